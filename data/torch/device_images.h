#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>

#include "data/beton/reader.h"
#include "data/torch/cuda/planned_images.h"
#include "framework/core/export.h"

namespace precast::data {

struct DeviceImageOptions {
  /// See LoaderOptions::cancel_copy.
  const std::atomic<bool>* cancel = nullptr;
  bool show_progress = true;
  /// Size in bytes of each of the two page-locked chunks through which pixels are copied.
  std::size_t chunk_bytes = std::size_t{32} << 20;
};

/// All stored images of a field, in a GPU's memory.
class PRECAST_API DeviceImages {
 public:
  /// Copies the images, for which plan_images() must have succeeded, to the GPU. @throws Error with
  /// ExitCode::out_of_memory if they do not fit in the free memory of the GPU
  DeviceImages(const BetonReader& reader, std::size_t field, at::Device device,
               const DeviceImageOptions& options = {});

  /// Whether all images were copied: false if the copy was cancelled.
  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] StoredImages stored() const;
  /// The pixels of all images, one after the other.
  [[nodiscard]] const at::Tensor& pixels() const { return pixels_; }

 private:
  /// @return false if the copy was cancelled
  bool copy_pixels(const BetonReader& reader, std::size_t field, const DeviceImageOptions& options);

  at::Tensor pixels_;
  at::Tensor offsets_;
  at::Tensor widths_;
  int max_width_ = 0;
  bool complete_ = false;
};

}  // namespace precast::data
