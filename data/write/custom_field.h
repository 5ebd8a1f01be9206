#pragma once

#include <vector>

#include "data/beton/field_tag.h"
#include "data/write/field.h"

namespace precast::data {

/// A field of type custom with one layout: stores metadata and, if the layout has a pointer, a
/// large value unchanged. A plug-in with its own format derives from Field in the same way: type()
/// returns custom, arguments() contains a tag, and encode() fills in the metadata and the large
/// value.
class PRECAST_API CustomField final : public Field {
 public:
  /// @param arguments the descriptor's arguments for FFCV's class (`to_binary()`), or nothing; the
  /// tag is added. @throws ConfigError for an invalid layout, and for arguments that use the bytes
  /// of the tag for something else; DataError for arguments with a damaged tag.
  CustomField(const FieldLayout& layout, std::vector<std::byte> arguments);
  [[nodiscard]] FieldType type() const override { return FieldType::custom; }
  [[nodiscard]] std::vector<std::byte> arguments() const override { return arguments_; }
  /// @throws DataError for a value other than a CustomInput, metadata of a different size, or a
  /// large value if the layout has no pointer.
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;

 private:
  FieldLayout layout_;
  std::vector<std::byte> arguments_;
};

}  // namespace precast::data
