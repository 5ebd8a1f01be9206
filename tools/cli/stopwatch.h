#pragma once

#include <chrono>
#include <vector>

namespace precast::tools {

/// Time since it was made: on the wall, and of this process on all cores (user and system).
class Stopwatch {
 public:
  Stopwatch();
  [[nodiscard]] double seconds() const;
  [[nodiscard]] double cpu_seconds() const;

 private:
  std::chrono::steady_clock::time_point start_;
  double cpu_start_;
};

/// CPU seconds of the calling thread alone, since it began.
[[nodiscard]] double thread_cpu_seconds();

/// The middle value (of an even number the upper one). @param values at least one.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace precast::tools
