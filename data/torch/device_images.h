#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "data/beton/reader.h"
#include "data/torch/cuda/planned_images.h"

namespace precast::data {

/// All stored images of a field, in a GPU's memory.
class DeviceImages {
 public:
  /// Copies the images to the GPU; prints progress. @throws DeviceError if they do not fit in the
  /// free memory of the GPU or are wider than kWidestPlanned; ConfigError for a JPEG
  DeviceImages(const BetonReader& reader, std::size_t field, at::Device device);

  [[nodiscard]] StoredImages stored() const;

 private:
  void copy_pixels(const BetonReader& reader, std::size_t field);

  at::Tensor pixels_;
  at::Tensor offsets_;
  at::Tensor widths_;
  int widest_ = 0;
};

}  // namespace precast::data
