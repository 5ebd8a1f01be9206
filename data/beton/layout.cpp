#include "data/beton/layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kMaxMetadataBytes = 65536;
constexpr std::size_t kMaxAlignment = 16;

/// Parses numbers separated by colons, such as `8:4:2`. Returns an empty list for any other string.
std::vector<std::size_t> numbers_of(std::string_view text) {
  std::vector<std::size_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::size_t number = 0;
    const auto [stopped, failed] = std::from_chars(at, end, number);
    if (failed != std::errc()) return {};
    numbers.push_back(number);
    if (stopped == end) return numbers;
    if (*stopped != ':') return {};
    at = stopped + 1;
  }
}

}  // namespace

FieldLayout field_layout(FieldType type) {
  switch (type) {
    case FieldType::floating:
    case FieldType::integer:
      return {8, 8, {}};
    case FieldType::ndarray:
    case FieldType::tensor:
      return {8, 8, 0};
    case FieldType::image:
      return {kImageMetadataBytes, 1, kImagePointerAt};
    case FieldType::bytes:
    case FieldType::json:
      return {16, 1, 0};
    case FieldType::custom:
      break;
  }
  require(false, "a custom field's type does not determine its layout");
  return {};
}

RecordLayout record_layout(std::span<const FieldLayout> fields) {
  RecordLayout layout;
  std::size_t largest = 1;
  for (const FieldLayout& field : fields) {
    layout.bytes = round_up(layout.bytes, field.alignment);
    layout.offsets.push_back(layout.bytes);
    layout.bytes += field.bytes;
    largest = std::max(largest, field.alignment);
  }
  layout.bytes = round_up(layout.bytes, largest);
  return layout;
}

RecordLayout record_layout(std::span<const FieldType> fields) {
  std::vector<FieldLayout> layouts;
  for (const FieldType type : fields) layouts.push_back(field_layout(type));
  return record_layout(layouts);
}

bool has_blob(FieldType type) {
  return type != FieldType::custom && field_layout(type).pointer_at.has_value();
}

bool is_valid(const FieldLayout& layout) {
  const bool aligned = layout.alignment > 0 && layout.alignment <= kMaxAlignment &&
                       (layout.alignment & (layout.alignment - 1)) == 0;
  const bool inside = !layout.pointer_at || (layout.bytes >= sizeof(std::uint64_t) &&
                                             *layout.pointer_at <= layout.bytes - 8);
  return aligned && inside && layout.bytes > 0 && layout.bytes <= kMaxMetadataBytes;
}

FieldLayout parse_field_layout(std::string_view text, std::string_view location) {
  const std::vector<std::size_t> numbers = numbers_of(text);
  FieldLayout layout;
  if (numbers.size() == 2 || numbers.size() == 3) {
    layout.bytes = numbers[0];
    layout.alignment = numbers[1];
    if (numbers.size() == 3) layout.pointer_at = numbers[2];
    if (is_valid(layout)) return layout;
  }
  throw ConfigError(fmt::format(
      "{}: expected the layout of a custom field as BYTES:ALIGNMENT or BYTES:ALIGNMENT:POINTER (1 "
      "to {} bytes of metadata; alignment 1, 2, 4, 8 or {}; offset of the 8-byte pointer inside "
      "the metadata), got '{}'",
      location, kMaxMetadataBytes, kMaxAlignment, text));
}

void add_field_layout(std::string_view text, std::string_view location,
                      std::map<std::string, FieldLayout>& layouts) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos) {
    throw ConfigError(fmt::format(
        "{}: expected the layout of a custom field as NAME=BYTES:ALIGNMENT[:POINTER], got '{}'",
        location, text));
  }
  const std::string name(text.substr(0, equals));
  const FieldLayout layout =
      parse_field_layout(text.substr(equals + 1), fmt::format("{} {}", location, name));
  if (!layouts.emplace(name, layout).second)
    throw ConfigError(fmt::format("{}: expected each field once, got '{}' twice", location, name));
}

std::string layout_text(const FieldLayout& layout) {
  return fmt::format("{}:{}{}", layout.bytes, layout.alignment,
                     layout.pointer_at ? fmt::format(":{}", *layout.pointer_at) : "");
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
