#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/beton/dtype.h"
#include "data/beton/field_tag.h"
#include "data/write/field.h"
#include "data/write/image_field.h"
#include "framework/core/registry.h"

namespace precast::data {

/// A value, and the sample it is of.
struct FirstValue {
  /// Sample::name
  std::string sample;
  Value value;
};

/// What the user chose for the fields that have choices.
struct FieldOptions {
  ImageFieldOptions image;
  /// Of ndarray and tensor fields; a source tells it.
  ArrayFormat array = {};
  /// Of pixels, ragged and custom fields that come from a .beton file; else Kind::none.
  FieldTag tag = {};
  /// custom: what else stands in the descriptor.
  std::vector<std::byte> arguments = {};
  /// Gives the first value that is to be written, for fields whose description follows from it.
  std::function<FirstValue()> first = {};
};

using FieldRegistry = Registry<Field, const FieldOptions&>;

/// Adds every field that a dataset can be written with: image, int, float, bytes, json, ndarray,
/// tensor, pixels, ragged, custom.
PRECAST_API void register_fields(FieldRegistry& fields);

}  // namespace precast::data
