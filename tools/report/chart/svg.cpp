#include "tools/report/chart/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/core/utf8.h"

namespace precast::tools {
namespace {

/// The length in bytes of the UTF-8 character at the front; 0 if it is invalid or incomplete.
std::size_t character_length(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  const std::size_t length = byte < 0x80                   ? 1
                             : byte >= 0xC2 && byte < 0xE0 ? 2
                             : byte >= 0xE0 && byte < 0xF0 ? 3
                             : byte >= 0xF0 && byte < 0xF5 ? 4
                                                           : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!continues_character(text[i])) return 0;
  return length;
}

std::string_view entity(char c) {
  switch (c) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

struct Rgb {
  double red, green, blue;
};

/// matplotlib's viridis at 0, 1/4, 1/2, 3/4 and 1.
constexpr std::array<Rgb, 5> kViridis = {
    {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};

Rgb viridis(double share) {
  const double position = std::clamp(share, 0.0, 1.0) * (kViridis.size() - 1);
  const auto left = std::min(static_cast<std::size_t>(position), kViridis.size() - 2);
  const double part = position - static_cast<double>(left);
  const auto mixed = [&](double a, double b) { return a + part * (b - a); };
  const Rgb &from = kViridis[left], &to = kViridis[left + 1];
  return {mixed(from.red, to.red), mixed(from.green, to.green), mixed(from.blue, to.blue)};
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view replaced = entity(text[0]);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (!replaced.empty()) {
      out += replaced;
    } else if (length > 1 || (length == 1 && (byte >= 0x20 || byte == '\n') && byte != 0x7F)) {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string readable(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "-" : fmt::format("{}", value);
  if (std::abs(value) < 1000) return fmt::format("{:.4g}", value);
  if (std::abs(value) >= 1e12) return fmt::format("{:.3g}", value);
  std::string digits = fmt::format("{:.0f}", value);
  const int first = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string series_class(int series) {
  return fmt::format("c{}", ((series % kSeriesColours) + kSeriesColours) % kSeriesColours);
}

std::string scale_colour(double share) {
  if (std::isnan(share)) return "#9a9a9a";
  const Rgb colour = viridis(share);
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(colour.red), std::lround(colour.green),
                     std::lround(colour.blue));
}

std::string scale_text_colour(double share) {
  const Rgb colour = viridis(std::isnan(share) ? 1 : share);
  return 0.299 * colour.red + 0.587 * colour.green + 0.114 * colour.blue > 120 ? "#000" : "#fff";
}

double text_width(std::string_view text) {
  return 6.6 * static_cast<double>(count_characters(text));
}

std::string svg_head(const std::string& title, double width, double height) {
  std::string head = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" aria-label=\"{2}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\">\n"
      "<rect class=\"paper\" width=\"{0:.0f}\" height=\"{1:.0f}\" rx=\"6\"/>\n",
      width, height, escaped(title));
  if (!title.empty())
    head +=
        fmt::format("<text class=\"ink heading\" x=\"14\" y=\"24\">{}</text>\n", escaped(title));
  return head;
}

std::string chart_styles() {
  return R"(.chart{font:12px system-ui,"Segoe UI",Roboto,"Helvetica Neue","Liberation Sans",Arial,sans-serif;max-width:100%;height:auto}
.chart .heading{font-size:14px;font-weight:600}
.chart .halo{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
.chart .paper{fill:#fff}.chart .ink{fill:#1f2328}.chart .soft{fill:#59636e}
.chart .grid{stroke:#e4e8ec;stroke-width:1}.chart .axis{stroke:#8c959f;stroke-width:1}
.chart .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.chart .noisy{stroke-width:1.4}.chart .faint{stroke-width:1.2;opacity:.4}
.chart .thin{fill:none;stroke:currentColor;stroke-width:1.2}.chart .band{fill:currentColor;opacity:.16}
.chart .fill{fill:currentColor}.chart .hollow{fill:#fff;stroke:currentColor;stroke-width:2}
.chart .c0{color:#0072b2}.chart .c1{color:#d55e00}.chart .c2{color:#009e73}.chart .c3{color:#b0568f}
.chart .c4{color:#d08a00}.chart .c5{color:#3f9fd8}.chart .c6{color:#7a6a00}.chart .c7{color:#5b6570}
@media (prefers-color-scheme:dark){
.chart .halo{stroke:#161b22}.chart .paper{fill:#161b22}.chart .ink{fill:#e6edf3}.chart .soft{fill:#9aa4ae}
.chart .grid{stroke:#2a313a}.chart .axis{stroke:#6e7681}.chart .hollow{fill:#161b22}
.chart .c0{color:#58a9e0}.chart .c1{color:#f08a4b}.chart .c2{color:#2fc79b}.chart .c3{color:#dd8fbf}
.chart .c4{color:#f0b429}.chart .c5{color:#8cd0f5}.chart .c6{color:#d6c84a}.chart .c7{color:#a8b3be}
}
)";
}

std::string svg_file(std::string svg) {
  const std::size_t inside = svg.find('>');
  if (inside == std::string::npos) return svg;
  // The styles contain no "<" or "&", so they need not be escaped.
  svg.insert(inside + 1, "\n<style>" + chart_styles() + "</style>");
  return svg + "\n";
}

}  // namespace precast::tools
