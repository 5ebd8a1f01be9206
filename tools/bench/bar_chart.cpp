#include "tools/bench/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"

namespace precast::tools {
namespace {

// In pixels of a document that scales.
constexpr int kWidth = 760, kLabels = 190, kPlot = 400, kTop = 52, kRow = 34, kBar = 22, kAxis = 44;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters have no place in XML.
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
  }
  return out;
}

/// 12345.6 as "12,346"; small values keep two digits.
std::string readable(double value) {
  if (value < 10) return fmt::format("{:.2g}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

/// The powers of ten around the values.
struct Decades {
  explicit Decades(const std::vector<Bar>& bars) {
    const auto [least, most] = std::ranges::minmax_element(bars, {}, &Bar::value);
    low = static_cast<int>(std::floor(std::log10(least->value) - 0.3));
    high = std::max(low + 1, static_cast<int>(std::ceil(std::log10(most->value))));
  }
  [[nodiscard]] double x(double value) const {
    return kLabels + kPlot * (std::log10(value) - low) / (high - low);
  }
  int low = 0;
  int high = 1;
};

}  // namespace

std::string bar_chart_svg(const std::string& title, const std::string& unit,
                          const std::vector<Bar>& bars) {
  require(!bars.empty() && std::ranges::all_of(bars, [](const Bar& bar) { return bar.value > 0; }),
          "a chart has bars, with values above 0");
  const Decades axis(bars);
  const int bottom = kTop + kRow * static_cast<int>(bars.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"16\" y=\"28\" font-size=\"16\">{2}</text>\n",
      kWidth, bottom + kAxis, escaped(title));
  for (int power = axis.low; power <= axis.high; ++power) {
    const double value = std::pow(10.0, power);
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\" fill=\"#555\">{4}</text>\n",
        axis.x(value), kTop, bottom, bottom + 16, readable(value));
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{} (logarithmic)</text>\n",
      kLabels + kPlot / 2, bottom + 34, escaped(unit));
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const int y = kTop + kRow * static_cast<int>(i) + (kRow - kBar) / 2;
    const double end = axis.x(bars[i].value);
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n"
        "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#3b6ea5\"/>\n"
        "<text x=\"{:.1f}\" y=\"{}\">{} {}</text>\n",
        kLabels - 8, y + 16, escaped(bars[i].label), kLabels, y, end - kLabels, kBar, end + 6,
        y + 16, readable(bars[i].value),
        escaped(unit + (bars[i].note.empty() ? "" : ", " + bars[i].note)));
  }
  return svg + "</svg>\n";
}

}  // namespace precast::tools
