#include "data/beton/field_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "data/beton/dtype.h"
#include "data/beton/layout.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

std::string parse_name(const std::byte* at, const std::string& place) {
  std::string name(kFieldNameBytes, '\0');
  std::memcpy(name.data(), at, kFieldNameBytes);
  name.resize(std::min(name.find('\0'), kFieldNameBytes));
  const bool printable =
      std::ranges::all_of(name, [](char letter) { return letter >= ' ' && letter <= '~'; });
  if (name.empty() || !printable) {
    throw DataError(fmt::format("{}: expected a name of 1 to 16 printable ASCII characters, got {}",
                                place, name.empty() ? "an empty one" : "other bytes"));
  }
  return name;
}

FieldType parse_type(std::byte byte, const std::string& place) {
  const int id = std::to_integer<int>(byte);
  if (id == static_cast<int>(FieldType::custom)) {
    throw DataError(
        fmt::format("{}: has a custom type (255), whose layout is not stored in the file, so the "
                    "file cannot be read. Write it again with built-in fields",
                    place));
  }
  if (id > static_cast<int>(FieldType::tensor)) {
    throw DataError(fmt::format("{}: expected a type id of 0 to 6, got {}", place, id));
  }
  return static_cast<FieldType>(id);
}

}  // namespace

std::vector<FieldInfo> parse_fields(std::span<const std::byte> descriptors, std::size_t count,
                                    const std::string& place) {
  std::vector<FieldInfo> fields;
  std::vector<FieldType> types;
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* at = descriptors.data() + i * kFieldBytes;
    const std::string here = fmt::format("{}: field {}", place, i);
    FieldInfo field;
    field.type = parse_type(*at, here);
    field.name = parse_name(at + 1, here);
    if (!names.insert(field.name).second) {
      throw DataError(fmt::format("{}: expected unique names, got '{}' twice", here, field.name));
    }
    if (field.type == FieldType::ndarray || field.type == FieldType::tensor) {
      const std::string there = fmt::format("{} ('{}')", here, field.name);
      ArrayFormat format = parse_array_arguments(at + 1 + kFieldNameBytes, there);
      field.value_bytes = array_bytes(format, there);
      field.dtype = std::move(format.dtype);
      field.shape = std::move(format.shape);
    }
    types.push_back(field.type);
    fields.push_back(std::move(field));
  }
  const RecordLayout layout = record_layout(types);
  for (std::size_t i = 0; i < count; ++i) fields[i].offset = layout.offsets[i];
  return fields;
}

}  // namespace precast::data
