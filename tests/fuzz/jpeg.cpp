#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "data/decode/jpeg_decoder.h"
#include "data/image/jpeg_encoder.h"
#include "framework/core/error.h"
#include "tests/data/decode/pixel_copies.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

using data::JpegDecoder;
using data::Rect;
using test::copy_of;

struct Size {
  int height = 0;
  int width = 0;
};

/// The size in the first start-of-frame marker, as the metadata of a dataset would contain it;
/// nothing if there is no marker.
std::optional<Size> declared_size(Input jpeg) {
  for (std::size_t i = 0; i + 8 < jpeg.size(); ++i) {
    const auto at = [&](std::size_t offset) { return std::to_integer<int>(jpeg[i + offset]); };
    const bool frame = at(0) == 0xFF && at(1) >= 0xC0 && at(1) <= 0xCF && at(1) != 0xC4 &&
                       at(1) != 0xC8 && at(1) != 0xCC;
    if (frame) return Size{at(5) << 8 | at(6), at(7) << 8 | at(8)};
  }
  return std::nullopt;
}

/// The region that the last bytes of the input choose. Bytes after the end of a JPEG have no other
/// meaning.
Rect chosen_region(Input input, Size size) {
  std::array<std::uint16_t, 4> numbers{};
  if (input.size() >= sizeof numbers) {
    std::memcpy(numbers.data(), input.last(sizeof numbers).data(), sizeof numbers);
  }
  Rect region;
  region.row = numbers[0] % size.height;
  region.column = numbers[1] % size.width;
  region.height = 1 + numbers[2] % (size.height - region.row);
  region.width = 1 + numbers[3] % (size.width - region.column);
  return region;
}

using Pixels = std::vector<std::uint8_t>;

/// The pixels, or nothing if the decoder rejects the JPEG.
std::optional<Pixels> decode(JpegDecoder& decoder, Input jpeg, Size size, const Rect& region) {
  try {
    return copy_of(decoder.decode(jpeg, size.height, size.width, region));
  } catch (const DataError& error) {
    reached(error.what());
    return std::nullopt;
  }
}

constexpr Size kGood{24, 40};

/// A JPEG that every decoder must accept.
std::vector<std::byte> good_jpeg() {
  data::Image image(kGood.height, kGood.width);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(i * 7 % 251);
  }
  std::vector<std::byte> file;
  data::JpegEncoder().encode(image.view(), 90, file);
  return file;
}

/// Checks that `decoder`, whatever it decoded before, decodes a valid image twice like a new
/// decoder.
void check_still_good(JpegDecoder& decoder) {
  static const std::vector<std::byte> good = good_jpeg();
  constexpr Rect kPart{3, 5, 9, 11};
  static const auto expected = [&] {
    JpegDecoder fresh;
    return decode(fresh, good, kGood, kPart);
  }();
  require(expected.has_value(), "the valid image is decoded");
  for (int time = 0; time < 2; ++time) {
    require(decode(decoder, good, kGood, kPart) == expected,
            "after any image, a decoder decodes valid images correctly");
  }
}

/// Checks that the complete image, if it can be decoded, contains the pixels of `region`.
void check_part_of_whole(JpegDecoder& decoder, Input jpeg, Size size, const Rect& region,
                         const Pixels& pixels) {
  const auto whole = decode(decoder, jpeg, size, {0, 0, size.height, size.width});
  if (!whole) return;
  const auto row_bytes = static_cast<std::size_t>(region.width) * 3;
  for (int y = 0; y < region.height; ++y) {
    const auto from =
        (static_cast<std::size_t>(region.row + y) * static_cast<std::size_t>(size.width) +
         static_cast<std::size_t>(region.column)) *
        3;
    require(std::equal(pixels.begin() +
                           static_cast<std::ptrdiff_t>(static_cast<std::size_t>(y) * row_bytes),
                       pixels.begin() +
                           static_cast<std::ptrdiff_t>(static_cast<std::size_t>(y + 1) * row_bytes),
                       whole->begin() + static_cast<std::ptrdiff_t>(from)),
            "the complete image contains the pixels of a region");
  }
}

/// Checks that the complete image equals libjpeg's or that both reject it, and that a region is the
/// same with and without checkpoints.
void check_beside_libjpeg(JpegDecoder& decoder, Input jpeg, Size size, const Rect& region,
                          const std::optional<Pixels>& pixels) {
  static JpegDecoder libjpeg({.libjpeg_only = true});
  const Rect all{0, 0, size.height, size.width};
  const auto whole = decode(libjpeg, jpeg, size, all);
  require(decode(decoder, jpeg, size, all) == whole, "the complete image equals libjpeg's");
  require(!decoder.is_intact(jpeg, size.height, size.width) || whole,
          "an image that is in order can be decoded");
  // libjpeg reads beyond a region, so it may reject data that precast's decoder does not read.
  const auto part = decode(libjpeg, jpeg, size, region);
  require(!part || pixels == part, "a region that libjpeg decodes is the same");
  if (!pixels) return;
  const std::size_t interval = 1 + jpeg.size() % 5;
  std::vector<std::uint64_t> points;
  require(
      copy_of(decoder.decode(jpeg, size.height, size.width, region, interval, points)) == *pixels,
      "finding checkpoints changes nothing");
  require(
      copy_of(decoder.decode(jpeg, size.height, size.width, region, {interval, points})) == *pixels,
      "checkpoints change nothing");
  const auto as_planes =
      decoder.decode_planes(jpeg, size.height, size.width, region, {interval, points});
  require(copy_of(as_planes) == *pixels, "planes have the same pixels");
}

}  // namespace

void jpeg(Input input) {
  static JpegDecoder decoder;
  const auto size = declared_size(input);
  if (!size || size->height == 0 || size->width == 0) return;
  const Rect region = chosen_region(input, *size);
  const auto pixels = decode(decoder, input, *size, region);
  check_still_good(decoder);
  if (pixels) check_part_of_whole(decoder, input, *size, region, *pixels);
  check_beside_libjpeg(decoder, input, *size, region, pixels);
}

}  // namespace precast::fuzz
