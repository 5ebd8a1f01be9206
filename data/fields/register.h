#pragma once

#include "data/beton/dtype.h"
#include "data/fields/field.h"
#include "data/fields/image_field.h"
#include "framework/core/registry.h"

namespace precast::data {

/// What the user chose for the fields that have choices.
struct FieldOptions {
  ImageFieldOptions image;
  /// Of ndarray and tensor fields; a source tells it.
  ArrayFormat array;
};

using FieldRegistry = Registry<Field, const FieldOptions&>;

/// Adds every field that a dataset can be written with: image, int, float.
PRECAST_API void register_fields(FieldRegistry& fields);

}  // namespace precast::data
