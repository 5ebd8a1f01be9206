#pragma once

#include <string>
#include <string_view>

namespace precast::tools {

/// Building blocks of all charts. A chart is a pure function that turns a plain struct into the
/// text of one <svg> element, which has no scripts and no fonts and loads nothing. HtmlPage inserts
/// the element unchanged; svg_file() adds the styles for a separate file. Colours follow the
/// viewer's light or dark mode.

/// Escapes text for XML or HTML, between tags or in an attribute in double quotes. Control
/// characters, which XML cannot contain, and bytes that are not UTF-8 are left out.
[[nodiscard]] std::string escaped(std::string_view text);

/// Formats a number for people: 12345.6 as "12,346", 0.0123 as "0.0123", 3e-7 as "3e-07", NaN as
/// "-".
[[nodiscard]] std::string readable(double value);

/// The number of colour classes. Series 8 has the colour of series 0 again.
inline constexpr int kSeriesColours = 8;
/// Returns the CSS class that sets `currentColor` to the colour of a series. In light mode, the
/// colours are those of Okabe and Ito's palette for colour-blind readers, with the light ones
/// darkened and black replaced by grey.
[[nodiscard]] std::string series_class(int series);

/// Returns the colour of `share` (0: dark, 1: bright) on viridis, a scale of evenly increasing
/// lightness, as "#rrggbb"; grey for NaN.
[[nodiscard]] std::string scale_colour(double share);
/// Black or white, whichever is more readable on scale_colour(share).
[[nodiscard]] std::string scale_text_colour(double share);

/// The approximate width of `text` in pixels at a font size of 12 px.
[[nodiscard]] double text_width(std::string_view text);

/// Starts a chart: `<svg ...>` with the title, both above the drawing and for screen readers. The
/// caller appends "</svg>".
[[nodiscard]] std::string svg_head(const std::string& title, double width, double height);

/// The CSS of all charts, to be included once per page.
[[nodiscard]] std::string chart_styles();
/// Returns `svg`, the result of a chart function, as a standalone file that includes the styles.
[[nodiscard]] std::string svg_file(std::string svg);

}  // namespace precast::tools
