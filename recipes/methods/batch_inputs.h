#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "framework/api/batch.h"

namespace precast::recipes {

/// Functions of the methods that change the model's inputs. @{

/// The indices into batch.fields of the inputs, each once, even if data.inputs lists a name twice.
[[nodiscard]] inline std::set<std::size_t> input_fields(const Batch& batch) {
  return {batch.inputs.begin(), batch.inputs.end()};
}
/// Whether an input with these dimensions, [N, C, H, W], is an image or a view of it.
[[nodiscard]] inline bool is_image(const at::Tensor& input) {
  constexpr std::int64_t kImageDims = 4;
  return input.dim() == kImageDims;
}
/// @}

}  // namespace precast::recipes
