#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/beton/write_dataset.h"
#include "framework/core/progress.h"
#include "tools/stop_signals.h"

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
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
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

/// @throws ConfigError if `out` is the file that is read.
void expect_other_file(const std::string& out, const std::filesystem::path& in);

/// A written file in words, and for programs.
void print_written(const std::string& out, const data::WriteSummary& summary);
[[nodiscard]] nlohmann::ordered_json written_json(const std::string& out,
                                                  const data::WriteSummary& summary);

}  // namespace precast::tools
