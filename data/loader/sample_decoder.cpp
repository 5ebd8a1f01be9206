#include "data/loader/sample_decoder.h"

#include <cstring>

#include "data/beton/reader.h"
#include "data/image/luma.h"
#include "data/resample/nearest.h"

namespace precast::data {
namespace {

/// The pixels of `region`: a view of the file or, for a JPEG, of the pixels that `jpeg` decodes.
ImageView crop_of(const ImageRecord& image, std::uint64_t sample, const Rect& region,
                  IndexedDecoder& jpeg) {
  if (image.mode == ImageMode::jpg) {
    return jpeg.decode(image.bytes, sample, image.height, image.width, region);
  }
  const std::ptrdiff_t stride = std::ptrdiff_t{image.width} * 3;
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(image.bytes.data());
  return {pixels + region.row * stride + std::ptrdiff_t{3} * region.column, region.height,
          region.width, stride};
}

}  // namespace

void SampleDecoder::decode(const ImageRecord& image, const SampleKey& key, int image_size_px,
                           std::uint8_t* out) {
  decode(image, key, image_size_px, PixelFormat{}, reinterpret_cast<std::byte*>(out));
}

void SampleDecoder::decode(const ImageRecord& image, const SampleKey& key, int image_size_px,
                           const PixelFormat& format, std::byte* out) {
  const Rect region = steps_.region(image.height, image.width, key);
  const bool as_planes = image.mode == ImageMode::jpg &&
                         Resizer::prefers_planes(region.height, region.width, image_size_px,
                                                 image_size_px, pipeline_.filter);
  finish(as_planes ? jpeg_.decode_planes(image.bytes, key.sample, image.height, image.width, region)
                   : crop_of(image, key.sample, region, jpeg_),
         key, image_size_px, format, out);
}

void SampleDecoder::decode(const StoredPixels& image, const SampleKey& key, int image_size_px,
                           const PixelFormat& format, std::byte* out) {
  finish(rgb_of(image, steps_.region(image.height, image.width, key), stored_), key, image_size_px,
         format, out);
}

void SampleDecoder::finish(const DecodedPixels& source, const SampleKey& key, int image_size_px,
                           const PixelFormat& format, std::byte* out) {
  const bool flip = steps_.flipped(key);
  const bool grey = pipeline_.channels == 1;
  if (pipeline_.steps.empty() && !grey) {
    resizer_.resize(source, image_size_px, image_size_px, flip, pipeline_.filter, format, out);
    return;
  }
  const PixelShape resized{image_size_px, image_size_px, 3};
  pixels_.resize(steps_.max_values(resized, /*mask=*/false));
  resizer_.resize(source, image_size_px, image_size_px, flip, pipeline_.filter, {},
                  reinterpret_cast<std::byte*>(pixels_.data()));
  if (grey && !pipeline_.steps.empty()) replace_with_luma(pixels_.data(), resized.pixels());
  Pixels done = steps_.run({pixels_.data(), resized}, key, std::nullopt);
  PixelFormat made = format;
  if (grey) {
    luma_of(done.data, done.shape.pixels(), done.data);
    made.channels = done.shape.channels = 1;
  }
  write_pixels({done.data, done.shape.height, done.shape.width, done.row_values()}, made, out);
}

IndexedDecoder SampleDecoder::make_decoder(const ImagePipeline& pipeline, JpegDecoding jpeg) {
  jpeg.options.luma_only = pipeline.channels == 1;
  return IndexedDecoder(jpeg);
}

void MaskDecoder::decode(const ImageRecord& mask, const SampleKey& key, int image_size_px,
                         std::uint8_t* out) {
  finish(crop_of(mask, key.sample, steps_.region(mask.height, mask.width, key), jpeg_), 3, key,
         image_size_px, out);
}

void MaskDecoder::decode(const std::uint8_t* mask, int height, int width, const SampleKey& key,
                         int image_size_px, std::uint8_t* out) {
  const Rect region = steps_.region(height, width, key);
  const ImageView source{mask + std::ptrdiff_t{region.row} * width + region.column, region.height,
                         region.width, width};
  finish(source, 1, key, image_size_px, out);
}

void MaskDecoder::finish(const ImageView& source, int channels, const SampleKey& key,
                         int image_size_px, std::uint8_t* out) {
  const PixelShape resized{image_size_px, image_size_px, channels};
  pixels_.resize(steps_.max_values(resized, /*mask=*/true));
  const Pixels pixels{pixels_.data(), resized};
  resize_nearest(source, steps_.flipped(key), pixels);
  const Pixels done = steps_.run(pixels, key, fill_);
  std::memcpy(out, done.data, done.shape.values());
}

}  // namespace precast::data
