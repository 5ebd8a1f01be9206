#pragma once

#include "framework/core/archive/tensor_record.h"

namespace precast::fuzz {

/// Reads every byte of every tensor. @throws std::logic_error if the bytes of a tensor do not
/// fill its shape.
void check_records(const TensorArchive& archive);

/// @throws std::logic_error if names, types, shapes, bytes, order or metadata differ.
void check_same(const TensorArchive& a, const TensorArchive& b);

}  // namespace precast::fuzz
