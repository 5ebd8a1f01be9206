#include "data/image/image_file.h"

#include <array>
#include <cstdint>

#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

using namespace precast::data;

/// Larger images are skipped, because an image at the decoders' own limit takes 512 MiB.
constexpr std::uint64_t kMaxPixels = 1 << 20;

std::uint64_t big_endian(Input bytes, std::size_t at, std::size_t count) {
  std::uint64_t number = 0;
  for (std::size_t i = at; i < at + count; ++i)
    number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return number;
}

/// Whether any header claims an image of more than kMaxPixels.
bool declares_too_many_pixels(Input file) {
  if (image_format(file) == ImageFormat::webp) {
    if (file.size() < 30) return false;
    // Sides are little-endian: 14 bits in lossy and lossless files, 24 bits in extended files.
    const auto at = [&](std::size_t byte) { return std::to_integer<std::uint64_t>(file[byte]); };
    const std::uint64_t lossless = at(21) | at(22) << 8 | at(23) << 16 | at(24) << 24;
    const std::uint64_t lossy_width = at(26) | (at(27) & 0x3F) << 8;
    const std::uint64_t lossy_height = at(28) | (at(29) & 0x3F) << 8;
    const std::uint64_t width = at(24) | at(25) << 8 | at(26) << 16;
    const std::uint64_t height = at(27) | at(28) << 8 | at(29) << 16;
    if (at(15) == 'L')
      return ((lossless & 0x3FFF) + 1) * ((lossless >> 14 & 0x3FFF) + 1) > kMaxPixels;
    return at(15) == 'X' ? (width + 1) * (height + 1) > kMaxPixels
                         : lossy_width * lossy_height > kMaxPixels;
  }
  if (image_format(file) == ImageFormat::png)
    return file.size() < 24 || big_endian(file, 16, 4) * big_endian(file, 20, 4) > kMaxPixels;
  for (std::size_t i = 0; i + 9 < file.size(); ++i) {
    const auto marker = big_endian(file, i, 2);
    if (marker >= 0xFFC0 && marker <= 0xFFCF &&
        big_endian(file, i + 5, 2) * big_endian(file, i + 7, 2) > kMaxPixels)
      return true;
  }
  return false;
}

/// Checks that a valid image is decoded correctly, whatever was decoded before it.
void check_valid_image() {
  static const std::array<unsigned char, 67> kPng = {
      0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48,
      0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
      0x00, 0x3A, 0x7E, 0x9B, 0x55, 0x00, 0x00, 0x00, 0x0A, 0x49, 0x44, 0x41, 0x54, 0x78,
      0x9C, 0x63, 0x60, 0x00, 0x00, 0x00, 0x02, 0x00, 0x01, 0x48, 0xAF, 0xA4, 0x71, 0x00,
      0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
  Image image;
  const ImageFileFacts facts = decode_image_file(std::as_bytes(std::span(kPng)), image);
  require(facts.format == ImageFormat::png && image.width == 1 && image.height == 1 &&
              image.pixels[0] == image.pixels[1],
          "a valid image is decoded correctly after any other");
}

}  // namespace

void image_file(Input input) {
  if (declares_too_many_pixels(input)) return;
  try {
    Image image;
    const ImageFileFacts facts = decode_image_file(input, image);
    require(facts.format != ImageFormat::unknown, "a decoded image has a known format");
    require(image.width > 0 && image.height > 0, "an image has pixels");
    require(image.pixels.size() ==
                static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3,
            "pixels fill the image");
    touch(std::as_bytes(std::span(image.pixels)));
  } catch (const DataError& refused) {
    reached(refused.what());
  }
  check_valid_image();
}

}  // namespace precast::fuzz
