#pragma once

#include <string>
#include <string_view>

namespace precast::tools {

/// What all charts are made of. A chart is a pure function from a plain struct to the text of one
/// <svg> element: no script, no font, nothing to load. It goes into an HtmlPage as it is; in a file
/// of its own it takes its styles along (svg_file). Colours follow the viewer's light or dark mode.

/// Text as it stands in XML or HTML, between tags or in an attribute in double quotes. Control
/// characters, which XML cannot hold, and bytes that are not UTF-8 are left out.
[[nodiscard]] std::string escaped(std::string_view text);

/// A number in about four digits for people: 12345.6 as "12,346", 0.0123 as "0.0123", 3e-7 as
/// "3e-07", NaN as "-".
[[nodiscard]] std::string readable(double value);

/// How many classes of colours there are; series past them take the first ones again.
inline constexpr int kSeriesColours = 8;
/// The CSS class that sets `currentColor` to the colour of a series: Okabe and Ito's palette, told
/// apart by those who do not see red or green, with its yellow darkened for white paper.
[[nodiscard]] std::string series_class(int series);

/// Where 0 <= share <= 1 lies between dark and bright on a scale that grows evenly in lightness
/// (viridis), as "#rrggbb"; something that is not a number is grey.
[[nodiscard]] std::string scale_colour(double share);
/// Black or white, whichever is read better on that colour.
[[nodiscard]] std::string ink_on_scale(double share);

/// About how wide text of 12 px is.
[[nodiscard]] double text_width(std::string_view text);

/// Starts a chart: `<svg ...>` with its title for screen readers and above the drawing. Ends with
/// "</svg>".
[[nodiscard]] std::string svg_head(const std::string& title, double width, double height);

/// The styles of all charts, once for a page.
[[nodiscard]] std::string chart_styles();
/// A chart with these styles: a file of its own. @param svg what a chart function returned.
[[nodiscard]] std::string svg_file(std::string svg);

}  // namespace precast::tools
