#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/core/export.h"

namespace precast {

/// Shows the progress of long work: on a terminal one line that is redrawn up to ten times a
/// second, elsewhere one plain line every five seconds. Writes to standard error. One thread.
class PRECAST_API Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Ends the redrawn line.
  ~Progress();

  /// True when it is time to show a line; ask before building the text, which may be costly.
  [[nodiscard]] bool due() const;
  void show(std::string_view text);
  /// The speed since construction and the time left, as `812 samples/s, 4.5 s left`.
  [[nodiscard]] std::string rate(std::uint64_t done, std::uint64_t total) const;
  /// Removes the redrawn line, so that other output can follow.
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point next_;
};

/// `1:02:03`, `4:05` or `6.7 s`.
[[nodiscard]] PRECAST_API std::string format_duration(double seconds);
/// `12.3 MB` (powers of 1000).
[[nodiscard]] PRECAST_API std::string format_bytes(double bytes);

}  // namespace precast
