#include "data/write/custom_field.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "framework/core/error.h"

namespace precast::data {

CustomField::CustomField(const FieldLayout& layout, std::vector<std::byte> arguments)
    : layout_(layout), arguments_(std::move(arguments)) {
  arguments_.resize(kFieldArgumentsBytes);
  const auto tag = arguments_.begin() + kTagAt;
  const bool free =
      std::all_of(tag, arguments_.end(), [](std::byte b) { return b == std::byte{}; });
  if (!free && parse_tag(arguments_.data(), "custom field").kind == FieldTag::Kind::none) {
    throw ConfigError(fmt::format(
        "custom field: expected arguments with zeros in bytes {} to {}, where precast stores the "
        "field's layout, got other bytes. Such a field cannot be written",
        kTagAt, kFieldArgumentsBytes - 1));
  }
  std::fill(tag, arguments_.end(), std::byte{});
  put_tag({.kind = FieldTag::Kind::custom, .layout = layout}, arguments_);
}

void CustomField::encode(const Value& value, std::uint64_t /*sample*/, EncodedValue& out) {
  const auto* input = std::get_if<CustomInput>(&value);
  if (input == nullptr)
    throw DataError(
        "custom field: expected a value of a custom field, got a value of another type");
  if (input->metadata.size() != layout_.bytes) {
    throw DataError(fmt::format("custom field: expected {} bytes of metadata, got {}",
                                layout_.bytes, input->metadata.size()));
  }
  if (!layout_.pointer_at && !input->blob.empty()) {
    throw DataError(
        "custom field: expected a layout with the offset of the pointer to the value's bytes, got "
        "a layout without it. Give --field-layout NAME=BYTES:ALIGNMENT:POINTER");
  }
  out.metadata = input->metadata;
  out.blob = input->blob;
}

}  // namespace precast::data
