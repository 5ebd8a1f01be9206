#include "tools/commands/png_grid.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/commands/png_file.h"

namespace precast::tools {
namespace {

constexpr std::size_t kFramePx = 2;
constexpr std::uint8_t kFrameGrey = 32;

/// The pixels of the whole picture.
struct Canvas {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<std::uint8_t> pixels;
};

Canvas lay_out(std::span<const std::uint8_t> pixels, std::size_t size) {
  const std::size_t image_bytes = size * size * 3;
  const std::size_t count = pixels.size() / image_bytes;
  const auto columns = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::size_t rows = (count + columns - 1) / columns;
  const std::size_t cell = size + kFramePx;
  Canvas canvas{.width = columns * cell + kFramePx, .height = rows * cell + kFramePx, .pixels = {}};
  canvas.pixels.assign(canvas.width * canvas.height * 3, kFrameGrey);
  for (std::size_t image = 0; image < count; ++image) {
    const std::size_t left = image % columns * cell + kFramePx;
    const std::size_t top = image / columns * cell + kFramePx;
    for (std::size_t y = 0; y < size; ++y) {
      const auto row = pixels.subspan(image * image_bytes + y * size * 3, size * 3);
      std::ranges::copy(row, canvas.pixels.begin() + static_cast<std::ptrdiff_t>(
                                                         ((top + y) * canvas.width + left) * 3));
    }
  }
  return canvas;
}

}  // namespace

void write_png_grid(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                    int size_px) {
  const Canvas canvas = lay_out(pixels, static_cast<std::size_t>(size_px));
  write_png(path, canvas.pixels, static_cast<std::uint32_t>(canvas.height),
            static_cast<std::uint32_t>(canvas.width));
}

}  // namespace precast::tools
