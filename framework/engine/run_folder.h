#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

#include "framework/api/metric_sink.h"
#include "framework/core/appended_file.h"
#include "framework/core/export.h"
#include "framework/core/file_lock.h"

namespace precast::engine {

/// The file with a run's results, which exists once the run has finished.
inline constexpr const char* kSummaryFile = "summary.json";

/// The folder with the files of one run, such as `<folder>/<run id>/{params.json, log, checkpoints,
/// final_weights.pt, final_weights.safetensors}`. While the object exists, the process that created
/// it holds the lock `train.lock` in the folder, so that no two processes train in one folder.
class PRECAST_API RunFolder {
 public:
  /// Creates and locks the folder, and removes incomplete checkpoints of killed processes; if the
  /// file system supports locks, also those of processes on other hosts (CheckpointWriters).
  /// @param run_id if empty, `YYYYMMDD-HHMMSS-<arch>-<4 hex digits>`; slashes in `arch` become `-`.
  /// @param resume whether the folder may contain results of an earlier run. A folder without
  /// results (with an empty log and no checkpoint, as after a failure before the first step) may
  /// always be used again.
  /// @throws IoError if the folder cannot be created, if another process trains in it, if it
  /// contains results and `resume` is false, or if it contains a finished run (summary.json)
  /// without checkpoints, because that run could only start over.
  RunFolder(const std::filesystem::path& folder, const std::string& run_id, const std::string& arch,
            bool resume);
  /// A folder that another rank has created and locked.
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  /// Writes the resolved configuration to params.json.
  void write_params(const nlohmann::ordered_json& params) const;
  /// Writes `object` to the file `name` in the folder. Bytes that are not UTF-8, which paths may
  /// contain, become replacement characters. @throws IoError
  void write_json(const std::string& name, const nlohmann::ordered_json& object) const;

 private:
  std::filesystem::path path_;
  std::optional<FileLock> lock_;
};

/// The run's `log`: one JSON object per line with ffcv-imagenet's keys, each line flushed. Adds
/// `timestamp` (Unix seconds) and `relative_time` (seconds since construction or the last rewind(),
/// plus the time of earlier processes, which rewind() and advance() set).
class PRECAST_API JsonLinesLog final : public MetricSink {
 public:
  /// Creates the log, or appends to an existing one. @throws IoError if that fails.
  explicit JsonLinesLog(std::filesystem::path path, FileOps& ops = posix_file_ops());
  void write(const nlohmann::ordered_json& record) override;
  void flush() override { file_.flush(); }
  /// The length in bytes, including lines that are still in memory because they could not be
  /// written (full disk).
  [[nodiscard]] std::int64_t position() const override { return file_.position(); }
  /// Truncates the file and removes a last line that a crash left incomplete; `relative_time`
  /// continues from the value in the last line.
  void rewind(std::int64_t position) override;
  /// The value that write() would now write as `relative_time`.
  [[nodiscard]] double seconds() const override;
  void advance(double seconds) override;

 private:
  AppendedFile file_;
  /// The time from which `relative_time` counts, in Unix seconds.
  double start_;
};

}  // namespace precast::engine
