#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/loader/host_batch.h"
#include "data/loader/outputs.h"
#include "framework/core/export.h"

namespace precast::data {

/// The position and shape of one output in a batch.
struct OutputField {
  /// Shape of one sample: [H, W, C] or [C, H, W] for an image, [bytes] for the plan of an image
  /// (ImagePlan), empty for a number. For values that are padded to the largest value of their
  /// batch: [number of elements of the largest value in the file].
  std::vector<std::int64_t> shape = {};
  /// In bytes: the output's offset in a batch's memory, and the size of its value for one sample.
  std::size_t offset = 0;
  std::size_t sample_bytes = 0;
};

/// The memory layout of the batches of one pass. Const member functions are thread-safe.
class PRECAST_API BatchLayout {
 public:
  /// Borrows `outputs`. @throws ConfigError if a transform cannot work on images of this size, if
  /// stored images are too large for plans (image_plan_bytes()), or if a batch would have more than
  /// 2^56 bytes.
  BatchLayout(const std::vector<Output>& outputs, std::int64_t batch_size,
              std::int64_t image_size_px);

  [[nodiscard]] std::int64_t image_size_px() const { return image_size_px_; }
  /// One per output, in the same order.
  [[nodiscard]] const std::vector<OutputField>& fields() const { return fields_; }
  /// Whether float32 images are written with non-temporal stores (PixelFormat::streamed). @{
  void set_streamed(bool streamed) { streamed_ = streamed; }
  [[nodiscard]] bool streamed() const { return streamed_; }
  /// @}
  /// Size of a batch's memory in bytes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Returns the first `count` samples in `memory` as tensors. Values that are padded to the
  /// largest value of their batch are first moved so that they form [count, largest], with zeros
  /// after the shorter values.
  [[nodiscard]] std::vector<HostTensor> finish(std::byte* memory, std::int64_t count) const;

 private:
  [[nodiscard]] std::int64_t pack(std::size_t output, std::byte* memory, std::int64_t count) const;

  const std::vector<Output>& outputs_;
  std::int64_t image_size_px_;
  std::vector<OutputField> fields_;
  std::size_t bytes_ = 0;
  bool streamed_ = false;
};

}  // namespace precast::data
