#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image/element_type.h"

namespace precast::data {

/// One output of a batch, in host memory and in C order, such as images [N, H, W, 3] (uint8 RGB, or
/// normalised float32), integers [N] or floats [N].
struct HostTensor {
  std::string name;
  ElementType type = ElementType::u8;
  std::vector<std::int64_t> shape;
  std::byte* data = nullptr;

  [[nodiscard]] std::size_t bytes() const {
    std::size_t count = 1;
    for (const std::int64_t side : shape) count *= static_cast<std::size_t>(side);
    return count * element_size(type);
  }
  template <typename T>
  [[nodiscard]] std::span<T> values() const {
    return {reinterpret_cast<T*>(data), bytes() / sizeof(T)};
  }
};

/// One batch; `fields` are its outputs, in the order of the pipeline. `memory` owns the data to
/// which they point. The memory returns to the loader's pool when the last copy of the pointer is
/// destroyed, and is never overwritten before that.
struct HostBatch {
  std::vector<HostTensor> fields;
  /// The sample id of each row, [N]: the sample's index in the dataset.
  std::vector<std::uint64_t> sample_ids;
  std::shared_ptr<const void> memory;
};

}  // namespace precast::data
