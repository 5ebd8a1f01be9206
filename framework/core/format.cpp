#include "framework/core/format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace precast {

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  // The limit accounts for rounding: 59.96 is shown as a minute, not as `60.0 s`.
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const long rounded = std::lround(seconds);
  if (rounded < 3600) return fmt::format("{}:{:02}", rounded / 60, rounded % 60);
  return fmt::format("{}:{:02}:{:02}", rounded / 3600, rounded / 60 % 60, rounded % 60);
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

std::string format_count(std::uint64_t count, std::string_view one) {
  if (count == 1) return fmt::format("1 {}", one);
  const bool takes_es = one.ends_with('s') || one.ends_with('x') ||
                        (one.ends_with("ch") && !one.ends_with("och"));  // epochs
  return fmt::format("{} {}{}", count, one, takes_es ? "es" : "s");
}

std::string first_names(const std::vector<std::string>& names, std::size_t max) {
  const std::span shown(names.data(), std::min(names.size(), max));
  const std::size_t more = names.size() - shown.size();
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace precast
