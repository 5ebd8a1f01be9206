#include "data/write/png_pixels.h"

#include <fmt/core.h>

#include "data/image/image.h"
#include "data/image/png_reader.h"
#include "framework/core/error.h"

namespace precast::data {

ArrayInput png_pixels(std::span<const std::byte> file) {
  PngReader reader(file, PngLayout::as_stored);
  const std::uint64_t height = reader.height();
  const std::uint64_t width = reader.width();
  if (height * reader.row_bytes() > kMaxPixels * 3) {
    throw DataError(
        fmt::format("image: expected at most {} bytes of pixels, got {} x {} px of {} bytes each",
                    kMaxPixels * 3, width, height, reader.row_bytes() / width));
  }
  require(reader.row_bytes() == width * reader.channels() * (reader.sixteen_bit() ? 2 : 1),
          "libpng returns complete values");
  ArrayInput array{{reader.sixteen_bit() ? "<u2" : "|u1", {height, width, reader.channels()}},
                   std::vector<std::byte>(height * reader.row_bytes())};
  reader.read(array.elements);
  return array;
}

}  // namespace precast::data
