#include "framework/engine/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/unix_time.h"

namespace precast::engine {
namespace {

/// The name must not be `lock`: tools/experiments/trial holds a lock of that name during the run.
constexpr const char* kLockFile = "train.lock";

/// Whether the folder contains a log with lines, or checkpoints.
bool has_results(const std::filesystem::path& folder) {
  std::error_code missing;
  const auto log_bytes = std::filesystem::file_size(folder / "log", missing);
  return (!missing && log_bytes > 0) || !find_checkpoints(folder / "checkpoints").empty();
}

/// Whether the run has finished and cannot be resumed. Training in its folder again would replace
/// its results.
bool is_finished_without_checkpoints(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / kSummaryFile) &&
         find_checkpoints(folder / "checkpoints").empty();
}

std::string new_run_id(std::string arch) {
  // The name of a plug-in's model may contain slashes, which would create additional folders.
  std::ranges::replace(arch, '/', '-');
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char stamp[32] = "";
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
  std::random_device entropy;
  return fmt::format("{}-{}-{:04x}", stamp, arch, entropy() & 0xFFFFU);
}

}  // namespace

RunFolder::RunFolder(const std::filesystem::path& folder, const std::string& run_id,
                     const std::string& arch, bool resume)
    : path_(folder / (run_id.empty() ? new_run_id(arch) : run_id)) {
  create_folders(path_);
  lock_ = FileLock::acquire(path_ / kLockFile);
  if (!lock_) {
    throw IoError(
        fmt::format("run folder: expected a folder that no other run uses, got {}, which {} is "
                    "using. Set another logging.run_id, or wait until that run ends",
                    path_.string(), lock_holder(path_ / kLockFile)));
  }
  if (!resume && has_results(path_)) {
    throw IoError(fmt::format(
        "run folder: expected a new folder, got {} with results of an "
        "earlier run. Set another logging.run_id, or --checkpoint.resume=auto to resume it",
        path_.string()));
  }
  if (resume && is_finished_without_checkpoints(path_)) {
    throw IoError(
        fmt::format("run folder: expected a run that can be resumed, got {}, a finished run "
                    "without intact checkpoints. Set another logging.run_id",
                    path_.string()));
  }
  remove_stale_checkpoints(path_ / "checkpoints", lock_->is_supported() ? CheckpointWriters::none
                                                                        : CheckpointWriters::any);
}

void RunFolder::write_params(const nlohmann::ordered_json& params) const {
  write_json("params.json", params);
}

void RunFolder::write_json(const std::string& name, const nlohmann::ordered_json& object) const {
  write_file(path_ / name, dump_json(object, 2) + "\n");
}

JsonLinesLog::JsonLinesLog(std::filesystem::path path, FileOps& ops)
    : file_(std::move(path), ops), start_(unix_seconds()) {}

void JsonLinesLog::write(const nlohmann::ordered_json& record) {
  const double now = unix_seconds();
  nlohmann::ordered_json line = {{"timestamp", now}, {"relative_time", now - start_}};
  line.update(record);
  file_.append(dump_json(line) + "\n");
}

void JsonLinesLog::rewind(std::int64_t position) {
  file_.truncate(position);
  double relative_time = 0;
  std::int64_t complete_bytes = 0;
  std::ifstream file(file_.path());
  for (std::string line; std::getline(file, line) && !file.eof();) {
    complete_bytes += static_cast<std::int64_t>(line.size()) + 1;
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object()) relative_time = record.value("relative_time", relative_time);
  }
  // If the last line is incomplete only because its remaining bytes are still in memory, it must
  // not be removed.
  if (!file_.has_unwritten()) file_.truncate(complete_bytes);
  start_ = unix_seconds() - relative_time;
}

double JsonLinesLog::seconds() const {
  return unix_seconds() - start_;
}

void JsonLinesLog::advance(double seconds) {
  start_ = std::min(start_, unix_seconds() - seconds);
}

}  // namespace precast::engine
