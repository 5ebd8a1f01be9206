#pragma once

#include <vector>

#include "data/beton/field_tag.h"
#include "data/write/field.h"

namespace precast::data {

/// Values beyond FFCV's types: bytes for FFCV, with a tag that describes their content.
class PRECAST_API ShapedField : public Field {
 public:
  [[nodiscard]] FieldType type() const final { return FieldType::bytes; }
  [[nodiscard]] std::vector<std::byte> arguments() const final;

 protected:
  /// @throws ConfigError for an impossible tag.
  explicit ShapedField(FieldTag tag);
  /// Fills `out` with the array's blob and its metadata: a pointer, left 0 because the writer sets
  /// it later, and the size of the blob.
  void store_array(const ArrayInput& array, EncodedValue& out) const;
  [[nodiscard]] const FieldTag& tag() const { return tag_; }

 private:
  FieldTag tag_;
};

/// Lossless images of any size with 1 to 4 channels of 8 or 16 bits (any plain type, if they come
/// as arrays), the same for all images. Accepts arrays [H, W] and [H, W, C], PNG files with their
/// own channels and depth (palettes as their colours, less than 8 bits as 8), and every other image
/// as 8-bit RGB.
class PRECAST_API PixelsField final : public ShapedField {
 public:
  /// @param tag of kind pixels. @throws ConfigError for an impossible tag.
  explicit PixelsField(const FieldTag& tag) : ShapedField(tag) {}
  /// The tag for values like this one. @throws DataError if the value is not an image.
  [[nodiscard]] static FieldTag tag_for(const Value& value);
  /// @throws DataError for an image of a different type or number of channels, or a value that is
  /// not an image.
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;
};

/// Arrays of one element type and number of dimensions, each with its own shape. Accepts arrays.
class PRECAST_API RaggedField final : public ShapedField {
 public:
  /// @param tag of kind ragged. @throws ConfigError for an impossible tag.
  explicit RaggedField(const FieldTag& tag) : ShapedField(tag) {}
  /// The tag for values like this one. @throws DataError if the value is not an array.
  [[nodiscard]] static FieldTag tag_for(const Value& value);
  /// @throws DataError for an array of a different type or number of dimensions.
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;
};

}  // namespace precast::data
