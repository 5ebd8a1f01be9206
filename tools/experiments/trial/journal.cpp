#include "tools/experiments/trial/journal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"
#include "framework/core/log.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kStatusNames = {"waiting", "done", "diverged", "failed",
                                                          "stopped"};

/// Number of bytes up to the end of the last complete line.
std::int64_t complete_lines_bytes(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  const auto end = std::find(bytes.rbegin(), bytes.rend(), std::byte{'\n'});
  return bytes.rend() - end;
}

/// A record, and its time for merging the records of several files.
struct TimedRecord {
  double time;
  ordered_json record;
};

void read_journal(const std::filesystem::path& path, bool warns,
                  std::vector<TimedRecord>& records) {
  std::ifstream file(path);
  std::uint64_t damaged = 0;
  double latest = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    auto record = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object()) {
      // The records of one file are in the right order, even if the clock was set back.
      latest = std::max(latest, record.value("time", 0.0));
      records.push_back({latest, std::move(record)});
    } else {
      ++damaged;
    }
  }
  if (warns && damaged > 0)
    log_warning("{}: skipped {} without a JSON object", path.string(),
                format_count(damaged, "line"));
}

}  // namespace

Journal::Journal(std::filesystem::path path)
    : path_(std::move(path)), fd_(posix_file_ops().open_append(path_.c_str())) {
  if (fd_ < 0) throw IoError("cannot open", path_.string(), errno);
  const std::int64_t complete_bytes = complete_lines_bytes(path_);
  if (complete_bytes < static_cast<std::int64_t>(std::filesystem::file_size(path_)) &&
      posix_file_ops().ftruncate(fd_, complete_bytes) != 0) {
    throw IoError("cannot truncate", path_.string(), errno);
  }
  posix_file_ops().fsync_folder(path_.parent_path().c_str());
}

Journal::~Journal() {
  posix_file_ops().close(fd_);
}

void Journal::append(const ordered_json& record) {
  std::string line = dump_json(record) + "\n";
  FileOps& ops = posix_file_ops();
  while (!line.empty()) {
    const auto written = retry_on_eintr([&] { return ops.write(fd_, line.data(), line.size()); });
    if (written <= 0) throw IoError("cannot write", path_.string(), written < 0 ? errno : ENOSPC);
    line.erase(0, static_cast<std::size_t>(written));
  }
  if (ops.fsync(fd_) != 0) throw IoError("cannot sync", path_.string(), errno);
}

std::vector<ordered_json> read_journals(const std::filesystem::path& folder, bool warns) {
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (auto entry = std::filesystem::directory_iterator(folder, none);
       !none && entry != std::filesystem::directory_iterator(); entry.increment(none)) {
    const std::string name = entry->path().filename();
    if (name.starts_with("results") && name.ends_with(".jsonl")) paths.push_back(entry->path());
  }
  std::ranges::sort(paths);
  std::vector<TimedRecord> timed;
  for (const auto& path : paths) read_journal(path, warns, timed);
  // Array tasks and a grid write separate files, so their records must be merged by time.
  std::ranges::stable_sort(timed, {}, &TimedRecord::time);
  std::vector<ordered_json> records;
  records.reserve(timed.size());
  for (TimedRecord& one : timed) records.push_back(std::move(one.record));
  return records;
}

std::string_view name_of(TrialStatus status) {
  return kStatusNames.at(static_cast<std::size_t>(status));
}

void TrialState::apply(const ordered_json& record) {
  const std::string event = record.value("event", "");
  if (event == "start") {
    ++starts;
    status = TrialStatus::waiting;
    open_since = record.value("time", 0.0);
    output_begin = record.value("output_bytes", std::uintmax_t{0});  // not in earlier versions
  } else if (event == "end") {
    open_since = 0;
    const auto* const name =
        std::ranges::find(kStatusNames, std::string_view(record.value("status", "")));
    status = name == kStatusNames.end() ? TrialStatus::waiting
                                        : static_cast<TrialStatus>(name - kStatusNames.begin());
    exit_code = record.value("exit_code", 0);
    seconds += record.value("seconds", 0.0);
    cpu_seconds += record.value("cpu_seconds", 0.0);
    if (record.value("failure", false)) ++failures;
    if (record.contains("figures")) figures = record.at("figures");
  }
}

std::map<std::string, TrialState> fold_states(const std::vector<ordered_json>& records) {
  std::map<std::string, TrialState> states;
  for (const ordered_json& record : records) {
    const std::string trial = record.value("trial", "");
    if (!trial.empty()) states[trial].apply(record);
  }
  return states;
}

void reset_failures(std::map<std::string, TrialState>& states) {
  for (auto& [id, state] : states) {
    if (state.status != TrialStatus::failed) continue;
    state.status = TrialStatus::waiting;
    state.failures = 0;
  }
}

}  // namespace precast::tools
