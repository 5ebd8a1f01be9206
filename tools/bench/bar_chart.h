#pragma once

#include <string>
#include <vector>

namespace precast::tools {

struct Bar {
  std::string label;
  /// Above 0.
  double value = 0;
  /// Written behind the value.
  std::string note{};
};

/// Horizontal bars on a logarithmic axis that starts at a power of ten, as an SVG document of its
/// own: no scripts, no fonts to load. @param unit of the values, as "img/s". @param bars at least
/// one.
[[nodiscard]] std::string bar_chart_svg(const std::string& title, const std::string& unit,
                                        const std::vector<Bar>& bars);

}  // namespace precast::tools
