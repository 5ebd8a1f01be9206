#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/encode/jpeg.h"
#include "data/fields/field.h"
#include "data/resample/resize.h"

namespace precast::data {

/// How images are stored. The meanings are FFCV's (ffcv/fields/rgb_image.py).
enum class ImageWriteMode {
  /// Pixels: fast to read, large.
  raw,
  /// Each as a JPEG.
  jpg,
  /// A JPEG where height x width x 3 exceeds `smart_threshold_bytes`, else pixels.
  smart,
  /// A JPEG with probability `compress_probability`, else pixels.
  proportion,
};

/// @throws ConfigError for an unknown name.
[[nodiscard]] PRECAST_API ImageWriteMode image_write_mode(std::string_view name);

struct ImageFieldOptions {
  ImageWriteMode mode = ImageWriteMode::jpg;
  /// The longer side is reduced to this by area averaging; smaller images stay as they are. 0: no
  /// limit.
  int max_resolution_px = 0;
  /// 1 to 100.
  int jpeg_quality = 90;
  double compress_probability = 0.5;
  std::uint64_t smart_threshold_bytes = 0;
  /// Keeps the bytes of a baseline YCbCr JPEG that needs no resize, where a JPEG is to be stored.
  /// Such a file is decoded all the same, so that a damaged one is found now and not in training.
  /// FFCV always encodes again, which loses quality twice.
  bool pass_through = false;
  /// Keys the draws of `proportion`.
  std::uint64_t seed = 0;
};

/// RGB images of any size up to 65535 px (FFCV's RGBImageField). Takes JPEG and PNG files and
/// pixels. Counts: jpg, raw, resized, kept_jpeg, png, grey, cmyk, jpeg_warnings.
class PRECAST_API ImageField final : public Field {
 public:
  /// @throws ConfigError for a value out of its range.
  explicit ImageField(const ImageFieldOptions& options);
  [[nodiscard]] FieldType type() const override { return FieldType::image; }
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;

 private:
  [[nodiscard]] bool stores_jpeg(const ImageView& image, std::uint64_t sample) const;
  /// `image`, or `resized_` filled from it.
  [[nodiscard]] ImageView fit(const ImageView& image);

  ImageFieldOptions options_;
  Resizer resizer_;
  JpegEncoder encoder_;
  Image decoded_;
  Image resized_;
};

}  // namespace precast::data
