#include "data/order/sample_property.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "data/beton/layout.h"
#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

constexpr std::array<std::string_view, 4> kImageProperties = {"bytes", "width", "height", "mode"};

bool is_number(const FieldInfo& field) {
  return field.type == FieldType::integer || field.type == FieldType::floating;
}

/// All names that an expression can use for this file.
std::vector<std::string> names_of(const BetonReader& reader) {
  std::vector<std::string> names;
  for (const FieldInfo& field : reader.fields()) {
    if (is_number(field)) {
      names.push_back(field.name);
      continue;
    }
    const std::size_t parts = field.type == FieldType::image ? kImageProperties.size() : 1;
    for (std::size_t i = 0; i < parts; ++i)
      names.push_back(fmt::format("{}.{}", field.name, kImageProperties[i]));
  }
  if (reader.first_field(FieldType::image) < reader.fields().size())
    names.insert(names.end(), kImageProperties.begin(), kImageProperties.end());
  return names;
}

}  // namespace

SampleProperty::SampleProperty(const BetonReader& reader, std::string_view name)
    : reader_(&reader) {
  if (find_number(name) || find_property(name)) return;
  throw ConfigError(
      fmt::format("filter: expected a field of numbers of {}, or the bytes, width, height "
                  "or mode of another field, got '{}'. {}",
                  reader.path().string(), name, suggest(std::string(name), names_of(reader))));
}

bool SampleProperty::find_number(std::string_view name) {
  const auto& fields = reader_->fields();
  const auto found = std::ranges::find_if(
      fields, [&](const FieldInfo& field) { return field.name == name && is_number(field); });
  if (found == fields.end()) return false;
  field_ = static_cast<std::size_t>(found - fields.begin());
  kind_ = found->type == FieldType::integer ? Kind::integer : Kind::floating;
  return true;
}

bool SampleProperty::find_property(std::string_view name) {
  // Splits at the last dot, because field names may contain dots.
  const std::size_t dot = name.rfind('.');
  const std::string_view part = dot == std::string_view::npos ? name : name.substr(dot + 1);
  const auto& fields = reader_->fields();
  field_ = reader_->first_field(FieldType::image);
  if (dot != std::string_view::npos) {
    const auto found = std::ranges::find(fields, name.substr(0, dot), &FieldInfo::name);
    field_ = static_cast<std::size_t>(found - fields.begin());
  }
  if (field_ == fields.size() || is_number(fields[field_])) return false;
  constexpr std::array kKinds = {Kind::bytes, Kind::width, Kind::height, Kind::mode};
  const std::size_t known = fields[field_].type == FieldType::image ? kImageProperties.size() : 1;
  const auto* const end = kImageProperties.begin() + known;
  const auto* const at = std::find(kImageProperties.begin(), end, part);
  if (at == end) return false;
  kind_ = kKinds[static_cast<std::size_t>(at - kImageProperties.begin())];
  return true;
}

long double SampleProperty::of(std::uint64_t sample) const {
  switch (kind_) {
    case Kind::integer:
      return static_cast<long double>(reader_->integer(sample, field_));
    case Kind::floating:
      return static_cast<long double>(reader_->floating(sample, field_));
    case Kind::width:
      return static_cast<long double>(reader_->image_size(sample, field_).width);
    case Kind::height:
      return static_cast<long double>(reader_->image_size(sample, field_).height);
    case Kind::mode:
      return static_cast<long double>(reader_->image_mode(sample, field_));
    case Kind::bytes:
      break;
  }
  return static_cast<long double>(reader_->blob_bytes(sample, field_));
}

}  // namespace precast::data
