#include "data/image/image_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "framework/core/error.h"
#include "framework/core/lower_case.h"

namespace precast::data {
namespace {

constexpr std::array<unsigned char, 3> kJpegMagic = {0xFF, 0xD8, 0xFF};
constexpr std::array<unsigned char, 8> kPngMagic = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::array<unsigned char, 4> kRiffMagic = {'R', 'I', 'F', 'F'};
constexpr std::array<unsigned char, 4> kWebpMagic = {'W', 'E', 'B', 'P'};
constexpr std::size_t kWebpMagicAt = 8;

template <std::size_t N>
bool begins_with(std::span<const std::byte> file, const std::array<unsigned char, N>& magic) {
  return file.size() >= N && std::memcmp(file.data(), magic.data(), N) == 0;
}

}  // namespace

ImageFormat image_format(std::span<const std::byte> file) {
  if (begins_with(file, kJpegMagic)) return ImageFormat::jpeg;
  if (begins_with(file, kPngMagic)) return ImageFormat::png;
  if (begins_with(file, kRiffMagic) && file.size() > kWebpMagicAt &&
      begins_with(file.subspan(kWebpMagicAt), kWebpMagic))
    return ImageFormat::webp;
  return ImageFormat::unknown;
}

ImageFormat format_from_extension(std::string_view name) {
  const std::string ending = lower_case(name.substr(std::min(name.rfind('.'), name.size())));
  if (ending == ".jpg" || ending == ".jpeg") return ImageFormat::jpeg;
  if (ending == ".png") return ImageFormat::png;
  return ending == ".webp" ? ImageFormat::webp : ImageFormat::unknown;
}

void allocate_pixels(std::uint64_t width, std::uint64_t height, Image& out) {
  // Width and height come from 32-bit numbers, so the product cannot overflow.
  if (width == 0 || height == 0 || width * height > kMaxPixels) {
    throw DataError(
        fmt::format("image: expected 1 to {} pixels, got {} x {}", kMaxPixels, width, height));
  }
  out.width = static_cast<int>(width);
  out.height = static_cast<int>(height);
  out.pixels.resize(width * height * 3);
}

ImageFileFacts decode_image_file(std::span<const std::byte> file, Image& out) {
  switch (image_format(file)) {
    case ImageFormat::jpeg:
      return decode_jpeg_file(file, out);
    case ImageFormat::png:
      return decode_png_file(file, out);
    case ImageFormat::webp:
      return decode_webp_file(file, out);
    case ImageFormat::unknown:
      break;
  }
  std::string start;
  for (const std::byte byte : file.first(std::min<std::size_t>(file.size(), 8))) {
    start += fmt::format(" {:02x}", std::to_integer<int>(byte));
  }
  throw DataError(fmt::format("image: expected a JPEG, PNG or WebP file, got {} bytes{}{}",
                              file.size(), start.empty() ? "" : " that begin with hexadecimal",
                              start));
}

}  // namespace precast::data
