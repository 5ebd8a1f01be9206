#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/jobs/write_dataset.h"
#include "framework/core/progress.h"
#include "framework/process/stop_signals.h"

namespace precast::tools {

/// The line that shows that writing a dataset goes on.
class WriteProgressLine {
 public:
  /// @param what the line's first word, as `write`. @param total samples to be written
  WriteProgressLine(std::string what, std::uint64_t total);

  void show(std::uint64_t samples, std::uint64_t bytes);
  void clear() { progress_.clear(); }

 private:
  std::string what_;
  std::uint64_t total_;
  Progress progress_;
};

/// Writes one dataset after the other with a line of progress; a signal ends the one that is being
/// written, and leaves nothing of it.
class WatchedWriting {
 public:
  using Write = std::function<data::WriteSummary(const data::WriteOptions&)>;

  /// @param what as WriteProgressLine.
  explicit WatchedWriting(std::string what) : what_(std::move(what)) {}
  /// @param write gets `options` with on_progress and cancel. @throws what it throws; for Cancelled
  /// an Error that names `out`, whose exit code is the signal's.
  data::WriteSummary run(const std::string& out, std::uint64_t samples, data::WriteOptions options,
                         const Write& write) const;

 private:
  std::string what_;
  StopSignals signals_;
};

/// @throws ConfigError if `out` is an empty name; IoError if its folder is not there.
void check_folder(const std::string& out);

/// @throws ConfigError if `out` is the file that is read.
void expect_other_file(const std::string& out, const std::filesystem::path& in);

/// What stands before writing a dataset: an input is never replaced, whether it is one of `inputs`
/// (empty paths are none) or a file among a source's own. @throws ConfigError if `out` is one of
/// them, or a file that is not empty and does not begin as a .beton file; as check_folder().
void check_output(const std::string& out, const std::vector<std::filesystem::path>& inputs);

/// Files that appear under their names when all of them are complete. One of them alone is left to
/// AtomicFile; of several, each is written under another name beside its own. What has not been
/// published is removed.
class JointOutputs {
 public:
  /// @throws IoError if one of several is there and no regular file; ConfigError if two are one.
  explicit JointOutputs(const std::vector<std::string>& outs);
  JointOutputs(const JointOutputs&) = delete;
  JointOutputs& operator=(const JointOutputs&) = delete;
  ~JointOutputs();

  /// Where to write what shall become `outs[i]`.
  [[nodiscard]] const std::string& place(std::size_t i) const { return files_.at(i).place; }
  /// Gives all of them their names; checksums beside older files go with these. @throws IoError
  void publish();

 private:
  struct File {
    std::filesystem::path target;
    std::string place;
  };
  std::vector<File> files_;
};

/// Damaged samples that were left out: the first ones as a warning on standard error, and all for
/// programs. @{
void print_skipped(const std::vector<data::SkippedSample>& skipped);
[[nodiscard]] nlohmann::ordered_json skipped_json(const std::vector<data::SkippedSample>& skipped);
/// @}

/// `jpg 3, resized 1`.
[[nodiscard]] std::string tally_text(const data::Tally& tally);

/// A written file in words, and for programs.
void print_written(const std::string& out, const data::WriteSummary& summary);
[[nodiscard]] nlohmann::ordered_json written_json(const std::string& out,
                                                  const data::WriteSummary& summary);

}  // namespace precast::tools
