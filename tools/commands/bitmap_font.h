#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace precast::tools {

/// Distance in px from one letter to the next, and from one line to the next.
inline constexpr std::size_t kLetterWidthPx = 6;
inline constexpr std::size_t kLineHeightPx = 9;

/// An image to draw into: [height, width, 3] uint8 RGB.
struct Canvas {
  std::span<std::uint8_t> pixels;
  std::size_t width = 0;
  std::size_t height = 0;
};

/// Draws a line of text in a fixed-width font of 5 x 8 px. Each UTF-8 character outside printable
/// ASCII becomes one `?`. Text wider than `width_px` is truncated and ends in two dots; nothing is
/// drawn outside the canvas.
/// @param left, top position of the first letter's top left corner, in px.
/// @param grey grey level of the letters, 0 (black) to 255 (white).
void draw_text(Canvas canvas, std::size_t left, std::size_t top, std::string_view text,
               std::size_t width_px, std::uint8_t grey);

}  // namespace precast::tools
