#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "framework/core/progress.h"

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

}  // namespace precast::tools
