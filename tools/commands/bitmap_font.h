#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace precast::tools {

/// Pixels from one letter to the next, and from one line to the next, at scale 1.
inline constexpr std::size_t kLetterWidthPx = 6;
inline constexpr std::size_t kLineHeightPx = 9;

/// A picture to draw into: [height, width, 3] uint8 RGB.
struct Canvas {
  std::span<std::uint8_t> pixels;
  std::size_t width = 0;
  std::size_t height = 0;
};

/// Draws a line of text in a fixed-width font of 5 x 8 px. Each character that is not printable
/// ASCII becomes `?`, one per UTF-8 character. What does not fit into `width_px` is cut off, with
/// two dots in its place; nothing is drawn outside the picture.
/// @param left, top of the first letter, px. @param grey of the letters.
void draw_text(Canvas canvas, std::size_t left, std::size_t top, std::string_view text,
               std::size_t width_px, std::uint8_t grey);

}  // namespace precast::tools
