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

std::string parse_name(const std::byte* at, const std::string& location) {
  std::string name(kFieldNameBytes, '\0');
  std::memcpy(name.data(), at, kFieldNameBytes);
  name.resize(std::min(name.find('\0'), kFieldNameBytes));
  const bool printable =
      std::ranges::all_of(name, [](char letter) { return letter >= ' ' && letter <= '~'; });
  if (name.empty() || !printable) {
    throw DataError(fmt::format("{}: expected a name of 1 to 16 printable ASCII characters, got {}",
                                location,
                                name.empty() ? "an empty name" : "a name with other bytes"));
  }
  return name;
}

FieldType parse_type(std::byte byte, const std::string& location) {
  const int id = std::to_integer<int>(byte);
  if (id > static_cast<int>(FieldType::tensor) && id != static_cast<int>(FieldType::custom)) {
    throw DataError(fmt::format("{}: expected a type id of 0 to 6 or 255, got {}", location, id));
  }
  return static_cast<FieldType>(id);
}

/// The layout from the field's tag, or from the user if the field has no tag.
FieldLayout custom_layout(const FieldInfo& field, const BetonOptions& options,
                          const std::string& location) {
  const auto given = options.layouts.find(field.name);
  if (field.tag.kind == FieldTag::Kind::custom) {
    if (given != options.layouts.end() && given->second != field.tag.layout)
      throw ConfigError(fmt::format(
          "{}: expected the layout {}, which the file stores, got {}. Leave out --field-layout (in "
          "a recipe: data.fields; in Python: fields)",
          location, layout_text(field.tag.layout), layout_text(given->second)));
    return field.tag.layout;
  }
  if (given != options.layouts.end()) {
    require(is_valid(given->second), "the layouts in the options are possible");
    return given->second;
  }
  throw DataError(fmt::format(
      "{1}: expected a layout for the custom type (255), got none in the file. Records cannot be "
      "located without it. Give --field-layout {0}=BYTES:ALIGNMENT (in a recipe: data.fields; in "
      "Python: Dataset(PATH, fields=[\"{0}=BYTES:ALIGNMENT\"])), where BYTES and ALIGNMENT are "
      "the itemsize and the alignment of the metadata_type of the field's FFCV class",
      field.name, location));
}

/// Sets the members of `field` that depend on its descriptor's arguments. @param arguments points
/// to kFieldArgumentsBytes bytes.
void read_arguments(const std::byte* arguments, const BetonOptions& options,
                    const std::string& location, FieldInfo& field) {
  const std::string here = fmt::format("{} ('{}')", location, field.name);
  if (field.type == FieldType::bytes || field.type == FieldType::custom) {
    field.tag = parse_tag(arguments, here);
    // Ignores a tag that belongs to a different field type.
    if ((field.tag.kind == FieldTag::Kind::custom) != (field.type == FieldType::custom))
      field.tag = {};
  }
  if (field.type == FieldType::custom) {
    field.arguments.assign(arguments, arguments + kFieldArgumentsBytes);
    field.layout = custom_layout(field, options, location);
    return;
  }
  field.layout = field_layout(field.type);
  if (field.type != FieldType::ndarray && field.type != FieldType::tensor) return;
  ArrayFormat format = parse_array_arguments(arguments, here);
  field.value_bytes = array_bytes(format, here);
  field.dtype = std::move(format.dtype);
  field.shape = std::move(format.shape);
}

void check_options(const BetonOptions& options, const std::vector<FieldInfo>& fields,
                   const std::string& location) {
  for (const auto& [name, layout] : options.layouts) {
    const auto field = std::ranges::find(fields, name, &FieldInfo::name);
    if (field != fields.end() && field->type == FieldType::custom) continue;
    throw ConfigError(fmt::format(
        "{}: expected a custom field '{}', because --field-layout (in a recipe: data.fields; in "
        "Python: fields) names it, got {}",
        location, name,
        field == fields.end() ? std::string("none")
                              : fmt::format("one of type {}", field_type_name(field->type))));
  }
}

RecordLayout layout_of(std::span<const FieldInfo> fields) {
  std::vector<FieldLayout> layouts;
  for (const FieldInfo& field : fields) layouts.push_back(field.layout);
  return record_layout(layouts);
}

}  // namespace

std::size_t record_bytes(std::span<const FieldInfo> fields) {
  return layout_of(fields).bytes;
}

std::vector<FieldInfo> parse_fields(std::span<const std::byte> descriptors, std::size_t count,
                                    const std::string& location, const BetonOptions& options) {
  std::vector<FieldInfo> fields;
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* at = descriptors.data() + i * kFieldBytes;
    const std::string here = fmt::format("{}: field {}", location, i);
    FieldInfo field;
    field.type = parse_type(*at, here);
    field.name = parse_name(at + 1, here);
    if (!names.insert(field.name).second) {
      throw DataError(fmt::format("{}: expected unique names, got '{}' twice", here, field.name));
    }
    read_arguments(at + 1 + kFieldNameBytes, options, here, field);
    fields.push_back(std::move(field));
  }
  check_options(options, fields, location);
  const RecordLayout layout = layout_of(fields);
  for (std::size_t i = 0; i < count; ++i) fields[i].offset = layout.offsets[i];
  return fields;
}

}  // namespace precast::data
