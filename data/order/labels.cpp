#include "data/order/labels.h"

#include <fmt/core.h>

#include "data/beton/file_info.h"
#include "data/beton/layout.h"
#include "data/beton/reader.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

bool is(const BetonReader& reader, std::size_t field, FieldType type) {
  return field < reader.fields().size() && reader.fields()[field].type == type;
}

/// @return fields().size() if there is no such field.
std::size_t find(const BetonReader& reader, const std::string& name) {
  std::size_t field = 0;
  while (field < reader.fields().size() && reader.fields()[field].name != name) ++field;
  return field;
}

}  // namespace

std::size_t default_label_field(const BetonReader& reader) {
  const FileInfo info = file_info_of(reader);
  for (std::size_t field = 0; field < reader.fields().size(); ++field) {
    const auto names = info.classes.find(reader.fields()[field].name);
    if (is(reader, field, FieldType::integer) && names != info.classes.end() &&
        !names->second.empty())
      return field;
  }
  return reader.first_field(FieldType::integer);
}

std::size_t label_field(const BetonReader& reader, const std::string& name) {
  const std::size_t field = name.empty() ? default_label_field(reader) : find(reader, name);
  if (!is(reader, field, FieldType::integer)) {
    throw ConfigError(fmt::format("label_field: expected an integer field{} in {}, got none",
                                  name.empty() ? "" : " '" + name + "'", reader.path().string()));
  }
  return field;
}

std::size_t weight_field(const BetonReader& reader, const std::string& name) {
  const std::size_t field = find(reader, name);
  if (!is(reader, field, FieldType::floating)) {
    throw ConfigError(fmt::format("weight_field: expected a float field '{}' in {}, got none", name,
                                  reader.path().string()));
  }
  return field;
}

}  // namespace precast::data
