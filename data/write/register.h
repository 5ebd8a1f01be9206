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

/// A value, and the sample that it belongs to.
struct FirstValue {
  /// Sample::name
  std::string sample;
  Value value;
};

/// What a source says about a field, from which every field is made.
struct FieldInputs {
  /// Of ndarray and tensor fields.
  ArrayFormat array = {};
  /// Of pixels, ragged and custom fields that come from a .beton file; else Kind::none.
  FieldTag tag = {};
  /// custom: the rest of the descriptor's arguments.
  std::vector<std::byte> arguments = {};
  /// Gives the first value that is to be written, for fields whose description follows from it.
  std::function<FirstValue()> first = {};
  /// Keys the random choices of a field.
  std::uint64_t seed = 0;
};

using FieldRegistry = PartRegistry<Field, const FieldInputs&>;

/// Adds every field that a dataset can be written with: image, int, float, bytes, json, ndarray,
/// tensor, pixels, ragged, custom.
PRECAST_API void register_fields(FieldRegistry& fields);
/// A registry of these.
[[nodiscard]] PRECAST_API FieldRegistry make_fields();

}  // namespace precast::data
