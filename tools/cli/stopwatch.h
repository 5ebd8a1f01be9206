#pragma once

#include <chrono>

namespace precast::tools {

/// Time since construction: wall-clock time, and CPU time of this process on all cores (user and
/// system).
class Stopwatch {
 public:
  Stopwatch();
  [[nodiscard]] double seconds() const;
  [[nodiscard]] double cpu_seconds() const;

 private:
  std::chrono::steady_clock::time_point start_;
  double cpu_start_;
};

/// CPU seconds of the calling thread since it started.
[[nodiscard]] double thread_cpu_seconds();

}  // namespace precast::tools
