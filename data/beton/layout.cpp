#include "data/beton/layout.h"

#include <algorithm>

#include "framework/core/error.h"

namespace precast::data {
namespace {

struct Extent {
  std::size_t bytes;
  std::size_t alignment;
};

Extent extent(FieldType type) {
  switch (type) {
    case FieldType::floating:
    case FieldType::integer:
    case FieldType::ndarray:
    case FieldType::tensor:
      return {8, 8};
    case FieldType::image:
      return {kImageMetadataBytes, 1};
    case FieldType::bytes:
    case FieldType::json:
      return {16, 1};
    case FieldType::custom:
      break;
  }
  require(false, "a custom field has no known layout");
  return {};
}

}  // namespace

RecordLayout record_layout(std::span<const FieldType> fields) {
  RecordLayout layout;
  std::size_t largest = 1;
  for (const FieldType type : fields) {
    const auto [bytes, alignment] = extent(type);
    layout.bytes = round_up(layout.bytes, alignment);
    layout.offsets.push_back(layout.bytes);
    layout.bytes += bytes;
    largest = std::max(largest, alignment);
  }
  layout.bytes = round_up(layout.bytes, largest);
  return layout;
}

bool has_blob(FieldType type) {
  return type != FieldType::floating && type != FieldType::integer;
}

std::string_view field_type_name(FieldType type) {
  switch (type) {
    case FieldType::floating:
      return "float";
    case FieldType::integer:
      return "int";
    case FieldType::image:
      return "image";
    case FieldType::bytes:
      return "bytes";
    case FieldType::ndarray:
      return "ndarray";
    case FieldType::json:
      return "json";
    case FieldType::tensor:
      return "tensor";
    case FieldType::custom:
      return "custom";
  }
  return "unknown";
}

}  // namespace precast::data
