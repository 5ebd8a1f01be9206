#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/api/model.h"
#include "framework/core/export.h"

namespace precast {

/// The samples of one step. The tensors are reference-counted: their memory is never reused while a
/// Batch (or a copy of a tensor) lives.
struct Batch {
  /// One tensor a field, in the order of the file's fields. Images are [N, 3, H, W] float,
  /// channels_last, normalised; integers [N] int64; floats [N] float64. On the device of the run.
  std::vector<NamedTensor> fields;
  /// The samples' indices in the dataset file, [N].
  std::vector<std::uint64_t> sample_ids;
  /// Which fields the model and the loss read.
  std::size_t image_index = 0;
  std::size_t label_index = 1;

  [[nodiscard]] at::Tensor& images() { return fields.at(image_index).tensor; }
  [[nodiscard]] at::Tensor& labels() { return fields.at(label_index).tensor; }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(sample_ids.size()); }
};

}  // namespace precast
