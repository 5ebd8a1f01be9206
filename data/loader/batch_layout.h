#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/loader/host_batch.h"
#include "data/loader/outputs.h"
#include "framework/core/export.h"

namespace precast::data {

/// Where one output lies in a batch.
struct OutputField {
  /// Of one sample: [H, W, 3] or [3, H, W] for an image, nothing for a number. Of values of
  /// different sizes: the elements that there is room for.
  std::vector<std::int64_t> shape = {};
  /// Where the output starts in a batch's memory, and the bytes of one sample there.
  std::size_t offset = 0;
  std::size_t sample_bytes = 0;
};

/// Where everything lies in the memory of one pass's batches. Const, thread-safe.
class PRECAST_API BatchLayout {
 public:
  /// Borrows `outputs`. @throws ConfigError if a transform cannot work on images of that
  /// size, and for sizes that no memory has.
  BatchLayout(const std::vector<Output>& outputs, std::int64_t batch_size,
              std::int64_t image_size_px);

  [[nodiscard]] std::int64_t image_size_px() const { return image_size_px_; }
  /// One an output, in its order.
  [[nodiscard]] const std::vector<OutputField>& fields() const { return fields_; }
  /// Memory that a batch takes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// The first `count` samples in `memory` as tensors. Values that are padded to the largest of
  /// their batch are moved together, [count, largest], with zeros behind the others.
  [[nodiscard]] std::vector<HostTensor> finish(std::byte* memory, std::int64_t count) const;

 private:
  [[nodiscard]] std::int64_t pack(std::size_t output, std::byte* memory, std::int64_t count) const;

  const std::vector<Output>& outputs_;
  std::int64_t image_size_px_;
  std::vector<OutputField> fields_;
  std::size_t bytes_ = 0;
};

}  // namespace precast::data
