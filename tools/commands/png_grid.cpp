#include "tools/commands/png_grid.h"

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "tools/commands/bitmap_font.h"
#include "tools/commands/png_file.h"

namespace precast::tools {
namespace {

constexpr std::size_t kFramePx = 2;
constexpr std::uint8_t kFrameGrey = 32;
constexpr std::uint8_t kTextGrey = 224;
/// The minimum width of a caption under a small image.
constexpr std::size_t kMinCaptionPx = 96;

/// The positions of the images; all sizes are in pixels.
struct Layout {
  std::size_t size = 0;
  std::size_t count = 0;
  std::size_t columns = 0;
  /// The distance from one image to the next.
  std::size_t step_x = 0;
  std::size_t step_y = 0;
  std::size_t width = 0;
  std::size_t height = 0;
};

Layout lay_out(std::size_t size, std::size_t count, const std::vector<Caption>& captions) {
  std::size_t lines = 0;
  for (const Caption& caption : captions) lines = std::max(lines, caption.size());
  Layout layout{.size = size, .count = count};
  layout.columns = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  layout.step_x = (lines > 0 ? std::max(size, kMinCaptionPx) : size) + kFramePx;
  layout.step_y = size + lines * kLineHeightPx + kFramePx;
  layout.width = layout.columns * layout.step_x + kFramePx;
  layout.height = (count + layout.columns - 1) / layout.columns * layout.step_y + kFramePx;
  return layout;
}

void draw_image(Canvas canvas, std::size_t left, std::size_t top,
                std::span<const std::uint8_t> image, std::size_t size) {
  for (std::size_t y = 0; y < size; ++y) {
    std::ranges::copy(image.subspan(y * size * 3, size * 3),
                      canvas.pixels.subspan(((top + y) * canvas.width + left) * 3).begin());
  }
}

}  // namespace

void write_png_grid(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                    int size_px, const std::vector<Caption>& captions) {
  const auto size = static_cast<std::size_t>(size_px);
  const std::size_t image_bytes = size * size * 3;
  const Layout layout = lay_out(size, pixels.size() / image_bytes, captions);
  require(captions.empty() || captions.size() == layout.count, "there is one caption per image");
  std::vector<std::uint8_t> picture(layout.width * layout.height * 3, kFrameGrey);
  const Canvas canvas{picture, layout.width, layout.height};
  for (std::size_t i = 0; i < layout.count; ++i) {
    const std::size_t left = i % layout.columns * layout.step_x + kFramePx;
    const std::size_t top = i / layout.columns * layout.step_y + kFramePx;
    draw_image(canvas, left, top, pixels.subspan(i * image_bytes, image_bytes), size);
    for (std::size_t line = 0; !captions.empty() && line < captions[i].size(); ++line) {
      draw_text(canvas, left, top + size + 1 + line * kLineHeightPx, captions[i][line],
                layout.step_x - kFramePx, kTextGrey);
    }
  }
  write_png(path, picture, static_cast<std::uint32_t>(layout.height),
            static_cast<std::uint32_t>(layout.width));
}

}  // namespace precast::tools
