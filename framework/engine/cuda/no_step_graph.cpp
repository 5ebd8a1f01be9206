#include "framework/core/error.h"
#include "framework/engine/step_graph.h"

namespace precast::engine {

std::unique_ptr<StepGraph> make_step_graph(at::Device /*device*/,
                                           std::vector<at::Tensor> /*parameters*/) {
  throw DeviceError(
      "training.cuda_graphs: expected a build with CUDA, got one without. Build with "
      "-DPRECAST_CUDA=ON where nvcc is installed, or give --training.cuda_graphs=off");
}

}  // namespace precast::engine
