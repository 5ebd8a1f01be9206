#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// A part of a progress line. If the line is too long, the least important parts are left out
/// first.
struct LinePart {
  std::string text;
  int importance = 0;
};

/// The parts with ` | ` between them. If they do not fit into `columns`, the least important parts
/// are left out; if the most important part alone is too long, it is truncated.
[[nodiscard]] PRECAST_API std::string fit_parts(std::vector<LinePart> parts, std::size_t columns);
/// The beginning of `text` that fits into `columns`. Does not split a UTF-8 character.
[[nodiscard]] PRECAST_API std::string_view fit_text(std::string_view text, std::size_t columns);

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};
/// The size of the terminal on standard error; 80 x 24 if it is not known.
[[nodiscard]] PRECAST_API TerminalSize terminal_size();

/// Shows the progress of a long operation. On a terminal, this is a single line that fits the width
/// and is redrawn up to ten times a second; elsewhere, a plain line is printed every five seconds.
/// Writes to standard error; a line that cannot be written is lost without an error. Not
/// thread-safe.
class PRECAST_API Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Removes the redrawn line.
  ~Progress();

  /// Whether it is time to show a line. Call this first, so that the text is only built when it is
  /// shown.
  [[nodiscard]] bool due() const;
  void show(std::string_view text);
  /// Shows the parts that fit on the terminal; elsewhere, all parts.
  void show(std::vector<LinePart> parts);
  /// The speed since construction and the estimated time left, such as `812 samples/s, 4.5 s left`.
  [[nodiscard]] std::string rate(std::uint64_t done, std::uint64_t total) const;
  /// Removes the redrawn line, so that other output can follow.
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace precast
