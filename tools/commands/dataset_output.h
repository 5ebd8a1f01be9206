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

/// The line that shows the progress of writing a dataset.
class WriteProgressLine {
 public:
  /// @param what the line's first word, such as `write`. @param total number of samples to be
  /// written
  WriteProgressLine(std::string what, std::uint64_t total);

  void show(std::uint64_t samples, std::uint64_t bytes);
  void clear() { progress_.clear(); }

 private:
  std::string what_;
  std::uint64_t total_;
  Progress progress_;
};

/// Writes datasets one after the other with a progress line. A signal stops the writing of the
/// current dataset, and its partial file is removed.
class MonitoredWrite {
 public:
  using Write = std::function<data::WriteSummary(const data::WriteOptions&)>;

  /// @param what as in WriteProgressLine.
  explicit MonitoredWrite(std::string what) : what_(std::move(what)) {}
  /// @param write is called with `options`, in which on_progress and cancel are set.
  /// @throws the errors of `write`; Cancelled becomes an Error with the signal's exit code. This
  /// Error, and every IoError, names `out`.
  data::WriteSummary run(const std::string& out, std::uint64_t samples, data::WriteOptions options,
                         const Write& write) const;

 private:
  std::string what_;
  StopSignals signals_;
};

/// Checks the folder of an output file. @throws ConfigError if `out` is empty; IoError if its
/// folder does not exist.
void check_folder(const std::string& out);

/// @throws ConfigError if `out` is the input file.
void check_different_file(const std::string& out, const std::filesystem::path& in);

/// Checks that `out` replaces none of `inputs` (empty paths are ignored), and no file other than a
/// dataset. Call it before writing a dataset. @throws ConfigError if `out` is one of `inputs`, or a
/// file that is not empty and does not begin like a .beton file; also what check_folder() throws.
void check_output(const std::string& out, const std::vector<std::filesystem::path>& inputs);

/// Output files that get their final names only when all of them are complete. Several files are
/// written under temporary names in the folders of their final names; the destructor removes files
/// that have not been published. A single file is written directly, because AtomicFile already does
/// the same for it.
class OutputFiles {
 public:
  /// @throws ConfigError if two outputs are the same file, or if data::check_sums_sidecar() rejects
  /// the sidecar of one; IoError if there are several outputs and one of them exists but is not a
  /// regular file.
  explicit OutputFiles(const std::vector<std::string>& outs);
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;
  ~OutputFiles();

  /// The path under which to write the file that publish() renames to `outs[i]`.
  [[nodiscard]] const std::string& write_path(std::size_t i) const {
    return files_.at(i).write_path;
  }
  /// Renames all files to their final names, and removes the sidecars (checksums, JPEG index) of
  /// the files that they replace. Does nothing for a single file. @throws IoError
  void publish();

 private:
  struct File {
    std::filesystem::path target;
    std::string write_path;
    /// The names under which readers look for sidecars: `outs[i]` and, if it is a symbolic link,
    /// the target.
    std::vector<std::filesystem::path> names;
  };
  std::vector<File> files_;
};

/// Report damaged or unsupported samples that were left out. print_skipped() prints the first ones
/// as a warning on standard error; skipped_json() returns all of them. @{
void print_skipped(const std::vector<data::SkippedSample>& skipped);
[[nodiscard]] nlohmann::ordered_json skipped_json(const std::vector<data::SkippedSample>& skipped);
/// @}

/// Formats a tally, such as `jpg 3, resized 1`.
[[nodiscard]] std::string tally_text(const data::Tally& tally);

/// Describes a written file as text, and as JSON.
void print_written(const std::string& out, const data::WriteSummary& summary);
[[nodiscard]] nlohmann::ordered_json written_json(const std::string& out,
                                                  const data::WriteSummary& summary);

}  // namespace precast::tools
