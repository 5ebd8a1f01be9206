#include "data/torch/batch_views.h"
#include "framework/core/error.h"

namespace precast::data {

std::unique_ptr<BatchSource> make_cuda_batch_source(const BetonReader& /*reader*/,
                                                    const Pipeline& /*pipeline*/,
                                                    const LoaderOptions& /*options*/,
                                                    BatchFields /*fields*/, at::Device /*device*/,
                                                    at::ScalarType /*image_dtype*/,
                                                    SharedRing /*ring*/) {
  throw DeviceError(
      "batch source: expected a build with CUDA, got a build without CUDA. Build with "
      "-DPRECAST_CUDA=ON where nvcc is installed, or train with --training.device=cpu");
}

}  // namespace precast::data
