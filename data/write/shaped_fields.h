#pragma once

#include <vector>

#include "data/beton/field_tag.h"
#include "data/write/field.h"

namespace precast::data {

/// Values of types that FFCV does not have. FFCV reads them as bytes; a tag in the field's
/// descriptor describes their content.
class PRECAST_API ShapedField : public Field {
 public:
  [[nodiscard]] FieldType type() const final { return FieldType::bytes; }
  [[nodiscard]] std::vector<std::byte> arguments() const final;

 protected:
  /// @throws ConfigError for an invalid tag.
  explicit ShapedField(FieldTag tag);
  /// Fills `out` with the array's blob and its metadata: a pointer, left 0 because the writer sets
  /// it later, and the size of the blob.
  void store_array(const ArrayInput& array, EncodedValue& out) const;
  [[nodiscard]] const FieldTag& tag() const { return tag_; }

 private:
  FieldTag tag_;
};

/// Lossless images of any size. All images have the same number of channels (1 to 4) and the same
/// type: 8 or 16 bits, or any plain type if they come as arrays. Accepts arrays [H, W] and [H, W,
/// C]; PNG files, which keep their channels and depth (palettes become colours, and less than 8
/// bits become 8); and every other image, which becomes 8-bit RGB.
class PRECAST_API PixelsField final : public ShapedField {
 public:
  /// @param tag of kind pixels. @throws ConfigError for an invalid tag.
  explicit PixelsField(const FieldTag& tag) : ShapedField(tag) {}
  /// Returns the tag for images with the type and channels of this one. @throws DataError if the
  /// value is not a valid image.
  [[nodiscard]] static FieldTag tag_for(const Value& value);
  /// @throws DataError for an image of a different type or number of channels, or a value that is
  /// not an image.
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;
};

/// Arrays of one element type and number of dimensions, each with its own shape. Accepts arrays.
class PRECAST_API RaggedField final : public ShapedField {
 public:
  /// @param tag of kind ragged. @throws ConfigError for an invalid tag.
  explicit RaggedField(const FieldTag& tag) : ShapedField(tag) {}
  /// Returns the tag for arrays with the type and number of dimensions of this one. @throws
  /// DataError if the value is not an array.
  [[nodiscard]] static FieldTag tag_for(const Value& value);
  /// @throws DataError for an array of a different type or number of dimensions, or a value that is
  /// not an array.
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;
};

}  // namespace precast::data
