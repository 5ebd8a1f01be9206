#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/decode/jpeg_decoder.h"
#include "data/image/image_file.h"
#include "data/image/jpeg_encoder.h"
#include "data/resample/resize.h"
#include "data/write/field.h"
#include "framework/core/config/schema.h"

namespace precast::data {

/// How images are stored. All modes but `keep` mean the same as in FFCV (ffcv/fields/rgb_image.py).
enum class ImageWriteMode {
  /// Every image as pixels, which are fast to read but large.
  raw,
  /// Every image as JPEG.
  jpg,
  /// An image as JPEG if height x width x 3 exceeds `smart_threshold_bytes`, otherwise as pixels.
  smart,
  /// An image as JPEG with probability `compress_probability`, otherwise as pixels.
  proportion,
  /// JPEGs are stored as JPEG, all other images as pixels.
  keep,
};

struct PRECAST_API ImageFieldOptions {
  ImageWriteMode mode = ImageWriteMode::jpg;
  /// The maximum length of the longer side: larger images are reduced to it by area averaging. 0:
  /// no limit.
  std::int64_t max_resolution_px = 0;
  /// 1 to 100.
  std::int64_t jpeg_quality = 90;
  double compress_probability = 0.5;
  std::int64_t smart_threshold_bytes = 0;
  /// Whether to keep the bytes of a source image instead of encoding it again, if the image is to
  /// be stored as JPEG. The source must be a grey or YCbCr JPEG, baseline or progressive, that
  /// needs no resize and decodes without a warning. It is still read to its end, so that damage is
  /// detected during writing and not during training. FFCV always encodes again, which loses
  /// quality a second time.
  bool passthrough = false;
  /// The seed of the random choices of `proportion`.
  std::uint64_t seed = 0;

  void options(Schema& schema);
  /// Reports options without effect in this mode, as Part::check() does.
  void check(const Schema& schema, std::string_view where, Diagnostics& diagnostics) const;
};

/// RGB images with sides of up to 65535 px (FFCV's RGBImageField). Accepts JPEG, PNG and WebP files
/// and pixels. Counts: jpg, raw, resized, kept_jpeg; for files also png, webp, grey, cmyk,
/// alpha_dropped, sixteen_bit, jpeg_warnings, exif_rotated (stored unrotated, although viewers
/// rotate it), and mislabelled (the file's name implies another format).
class PRECAST_API ImageField final : public Field {
 public:
  /// @throws ConfigError for a value out of its range.
  explicit ImageField(const ImageFieldOptions& options);
  [[nodiscard]] FieldType type() const override { return FieldType::image; }
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;

 private:
  void count_facts(const ImageFileFacts& facts, ImageFormat implied_format);
  /// Stores a JPEG with a single scan, if its bytes may be kept, without decoding it to pixels.
  /// @return false for every other image; nothing is then stored.
  bool keep(const ImageInput& input, std::uint64_t sample, EncodedValue& out);
  [[nodiscard]] bool fits(int width, int height) const;
  /// Decodes `input` into decoded_. @return whether its bytes can be stored as they are.
  [[nodiscard]] bool decode(const ImageInput& input);
  /// @param was_jpeg whether the source is a JPEG.
  [[nodiscard]] bool stores_jpeg(const ImageView& image, std::uint64_t sample, bool was_jpeg) const;
  /// Returns `image` or, if it is too large, the reduced image in `resized_`.
  [[nodiscard]] ImageView fit(const ImageView& image);

  ImageFieldOptions options_;
  Resizer resizer_;
  JpegEncoder encoder_;
  /// The decoder that the loader uses, which has its own limits for progressive files.
  JpegDecoder loader_decoder_;
  Image decoded_;
  Image resized_;
};

}  // namespace precast::data
