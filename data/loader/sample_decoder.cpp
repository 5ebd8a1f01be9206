#include "data/loader/sample_decoder.h"

#include "data/beton/reader.h"

namespace precast::data {

void SampleDecoder::decode_to(const ImageRecord& image, const SamplePlace& place, int image_size_px,
                              const PixelFormat& format, std::byte* out) {
  const auto epoch = static_cast<std::uint32_t>(place.epoch);
  RandomStream crop_random(seed_, epoch, place.position, RandomUse::crop);
  const Rect region = pipeline_.crop->choose(image.height, image.width, crop_random);
  bool flip = false;
  if (pipeline_.flip_probability > 0) {
    RandomStream flip_random(seed_, epoch, place.position, RandomUse::flip);
    flip = flip_random.uniform() < pipeline_.flip_probability;
  }

  ImageView source;
  if (image.mode == ImageMode::jpg) {
    source = jpeg_.decode(image.bytes, image.height, image.width, region);
  } else {
    const std::ptrdiff_t stride = std::ptrdiff_t{image.width} * 3;
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(image.bytes.data());
    source = {pixels + region.row * stride + std::ptrdiff_t{3} * region.column, region.height,
              region.width, stride};
  }
  resizer_.resize(source, image_size_px, image_size_px, flip, ResizeFilter::area, format, out);
}

void SampleDecoder::decode(const ImageRecord& image, const SamplePlace& place, int image_size_px,
                           std::uint8_t* out) {
  decode_to(image, place, image_size_px, {}, reinterpret_cast<std::byte*>(out));
}

void SampleDecoder::decode_normalized(const ImageRecord& image, const SamplePlace& place,
                                      int image_size_px, const Normalize& normalize, float* out) {
  decode_to(image, place, image_size_px, {.type = ElementType::f32, .normalize = &normalize},
            reinterpret_cast<std::byte*>(out));
}

}  // namespace precast::data
