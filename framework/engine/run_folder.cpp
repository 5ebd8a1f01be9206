#include "framework/engine/run_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <system_error>

#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/core/log.h"

namespace precast::engine {
namespace {

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string new_run_id(const std::string& arch) {
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
                     const std::string& arch, bool go_on)
    : path_(folder / (run_id.empty() ? new_run_id(arch) : run_id)) {
  create_folders(path_);
  if (!go_on && std::filesystem::exists(path_ / "log")) {
    throw IoError(
        fmt::format("run folder: expected a new folder, got {} with a log of an earlier "
                    "run. Give another logging.run_id, or --checkpoint.resume=auto to go on",
                    path_.string()));
  }
}

void RunFolder::write_params(const nlohmann::ordered_json& params) const {
  write_file(path_ / "params.json",
             params.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

JsonLinesLog::JsonLinesLog(std::filesystem::path path, FileOps& ops)
    : path_(std::move(path)),
      ops_(ops),
      fd_(ops.open_append(path_.c_str())),
      start_(unix_seconds()) {
  if (fd_ < 0) throw IoError("cannot create", path_.string(), errno);
  written_ = static_cast<std::int64_t>(std::filesystem::file_size(path_));
}

JsonLinesLog::~JsonLinesLog() {
  ops_.close(fd_);
}

void JsonLinesLog::write(const nlohmann::ordered_json& record) {
  const double now = unix_seconds();
  nlohmann::ordered_json line = {{"timestamp", now}, {"relative_time", now - start_}};
  line.update(record);
  unwritten_ += line.dump() + "\n";
  try {
    failpoint("log.before_line");
    write_out();
  } catch (const IoError& error) {
    if (!warned_)
      log_warning("{}. Training goes on; the lines are kept and tried again.", error.what());
    warned_ = true;
  }
}

void JsonLinesLog::write_out() {
  while (!unwritten_.empty()) {
    const std::ptrdiff_t written = ops_.write(fd_, unwritten_.data(), unwritten_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw IoError("cannot write", path_.string(), written < 0 ? errno : ENOSPC);
    unwritten_.erase(0, static_cast<std::size_t>(written));
    written_ += written;
  }
}

std::int64_t JsonLinesLog::position() const {
  return written_ + static_cast<std::int64_t>(unwritten_.size());
}

void JsonLinesLog::rewind(std::int64_t position) {
  unwritten_.clear();
  // A log that is shorter lost lines to a crash; there is nothing to cut.
  if (position < written_) {
    if (ops_.ftruncate(fd_, position) != 0) throw IoError("cannot cut", path_.string(), errno);
    written_ = position;
  }
  double relative_time = 0;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object()) relative_time = record.value("relative_time", relative_time);
  }
  start_ = unix_seconds() - relative_time;
}

}  // namespace precast::engine
