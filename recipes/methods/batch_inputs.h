#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "framework/api/batch.h"

namespace precast::recipes {

/// Functions for methods that change the model's inputs. @{

/// The indices of the inputs in batch.fields, each once, even if data.inputs lists a name twice.
[[nodiscard]] inline std::set<std::size_t> input_fields(const Batch& batch) {
  return {batch.inputs.begin(), batch.inputs.end()};
}
/// Whether the input contains images, [N, C, H, W].
[[nodiscard]] inline bool is_image(const at::Tensor& input) {
  constexpr std::int64_t kImageDims = 4;
  return input.dim() == kImageDims;
}
/// @}

}  // namespace precast::recipes
