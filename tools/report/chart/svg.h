#pragma once

#include <string>
#include <string_view>

namespace precast::tools {

/// Building blocks of all charts. A chart is a pure function from a plain struct to the text of one
/// <svg> element: no script, no font, nothing to load. It is inserted into an HtmlPage unchanged;
/// as a separate file it includes its styles (svg_file). Colours follow the viewer's light or dark
/// mode.

/// Escapes text for XML or HTML, between tags or in an attribute in double quotes. Control
/// characters, which XML cannot contain, and bytes that are not UTF-8 are left out.
[[nodiscard]] std::string escaped(std::string_view text);

/// A number in human-readable form, with about four digits: 12345.6 as "12,346", 0.0123 as
/// "0.0123", 3e-7 as "3e-07", NaN as "-".
[[nodiscard]] std::string readable(double value);

/// The number of colour classes; further series start again from the first one.
inline constexpr int kSeriesColours = 8;
/// The CSS class that sets `currentColor` to the colour of a series. On white paper, the colours
/// are Okabe and Ito's palette, which colour-blind readers can distinguish, with its light colours
/// darkened and grey in place of black.
[[nodiscard]] std::string series_class(int series);

/// The colour of 0 <= share <= 1 from dark to bright on a scale of evenly increasing lightness
/// (viridis), as "#rrggbb"; grey for NaN.
[[nodiscard]] std::string scale_colour(double share);
/// Black or white, whichever is more readable on scale_colour(share).
[[nodiscard]] std::string scale_text_colour(double share);

/// The approximate width of text of 12 px.
[[nodiscard]] double text_width(std::string_view text);

/// Starts a chart: `<svg ...>` with its title for screen readers and above the drawing. The caller
/// ends it with "</svg>".
[[nodiscard]] std::string svg_head(const std::string& title, double width, double height);

/// The styles of all charts, to be included once per page.
[[nodiscard]] std::string chart_styles();
/// A chart with these styles, as a separate file. @param svg the result of a chart function.
[[nodiscard]] std::string svg_file(std::string svg);

}  // namespace precast::tools
