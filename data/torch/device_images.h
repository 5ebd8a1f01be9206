#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>

#include "data/beton/reader.h"
#include "data/torch/cuda/planned_images.h"
#include "framework/core/export.h"

namespace precast::data {

/// All stored images of a field, in a GPU's memory.
class PRECAST_API DeviceImages {
 public:
  /// Page-locked memory from which pixels are copied, in bytes: two chunks of this size.
  static constexpr std::size_t kChunkBytes = std::size_t{32} << 20;

  /// Copies the images, for which plan_images() must have succeeded, to the GPU; shows progress.
  /// @param cancel see LoaderOptions::cancel_copy. @throws Error with ExitCode::out_of_memory if
  /// they do not fit in the free memory of the GPU
  DeviceImages(const BetonReader& reader, std::size_t field, at::Device device,
               const std::atomic<bool>* cancel = nullptr, std::size_t chunk_bytes = kChunkBytes);

  [[nodiscard]] StoredImages stored() const;
  /// The pixels of all images, one after the other.
  [[nodiscard]] const at::Tensor& pixels() const { return pixels_; }

 private:
  void copy_pixels(const BetonReader& reader, std::size_t field, const std::atomic<bool>* cancel,
                   std::size_t chunk_bytes);

  at::Tensor pixels_;
  at::Tensor offsets_;
  at::Tensor widths_;
  int widest_ = 0;
};

}  // namespace precast::data
