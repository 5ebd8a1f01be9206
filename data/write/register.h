#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/beton/dtype.h"
#include "data/beton/field_tag.h"
#include "data/write/field.h"
#include "framework/core/config/part.h"

namespace precast::data {

/// A value, and the sample to which it belongs.
struct FirstValue {
  /// Sample::name
  std::string sample;
  Value value;
};

/// A source's description of a field, from which the field is created.
struct FieldInputs {
  /// Only for ndarray and tensor fields.
  ArrayFormat array = {};
  /// For pixels, ragged and custom fields from a .beton file; else Kind::none.
  FieldTag tag = {};
  /// For custom fields: the other arguments of the descriptor.
  std::vector<std::byte> arguments = {};
  /// Returns the first value to be written, for fields whose description depends on it.
  std::function<FirstValue()> first = {};
  /// The seed of a field's random choices.
  std::uint64_t seed = 0;
};

using FieldRegistry = PartRegistry<Field, const FieldInputs&>;

/// Registers the fields that come with precast: image, int, float, bytes, json, ndarray, tensor,
/// pixels, ragged, custom.
PRECAST_API void register_fields(FieldRegistry& fields);
/// A registry with the fields of register_fields().
[[nodiscard]] PRECAST_API FieldRegistry make_fields();

}  // namespace precast::data
