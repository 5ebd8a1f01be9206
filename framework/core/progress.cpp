#include "framework/core/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>

namespace precast {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRedrawEvery = std::chrono::milliseconds(100);
constexpr auto kPlainLineEvery = std::chrono::seconds(5);

}  // namespace

Progress::Progress()
    : terminal_(::isatty(STDERR_FILENO) == 1), start_(Clock::now()), next_(start_) {
  if (!terminal_) next_ += kPlainLineEvery;
}

Progress::~Progress() {
  clear();
}

bool Progress::due() const {
  return Clock::now() >= next_;
}

void Progress::show(std::string_view text) {
  next_ = Clock::now();
  if (terminal_) {
    next_ += kRedrawEvery;
    fmt::print(stderr, "\r\033[K{}", text);
    std::fflush(stderr);
    drawn_ = true;
  } else {
    next_ += kPlainLineEvery;
    fmt::print(stderr, "{}\n", text);
  }
}

std::string Progress::rate(std::uint64_t done, std::uint64_t total) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double each_second = static_cast<double>(done) / seconds;
  return fmt::format("{:.0f} samples/s, {} left", each_second,
                     format_duration(static_cast<double>(total - done) / each_second));
}

void Progress::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  // Compared as it will be shown: 59.96 is a minute, not `60.0 s`.
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const long whole = std::lround(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_bytes(double bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= (unit == 0 ? 999.5 : 999.95) && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

}  // namespace precast
