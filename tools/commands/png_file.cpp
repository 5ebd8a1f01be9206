#include "tools/commands/png_file.h"

#include <fmt/core.h>
#include <png.h>

#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::tools {

void write_png(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
               std::uint32_t height, std::uint32_t width) {
  require(pixels.size() == std::size_t{height} * width * 3, "the pixels fill the image");
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  std::vector<std::byte> encoded;
  // The first call only determines the size.
  bool written =
      png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr) != 0;
  if (written) {
    encoded.resize(size);
    written =
        png_image_write_to_memory(&image, encoded.data(), &size, 0, pixels.data(), 0, nullptr) != 0;
  }
  if (!written) throw IoError(fmt::format("cannot encode {}: {}", path.string(), image.message));
  AtomicFile file(path);
  file.append(std::span(encoded).first(size));
  file.commit();
}

}  // namespace precast::tools
