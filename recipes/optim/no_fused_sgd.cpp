// In builds without CUDA.
#include "recipes/optim/fused_sgd.h"

namespace precast::recipes {

std::unique_ptr<FusedSgd> make_fused_sgd(double /*momentum*/, bool /*nesterov*/) {
  return nullptr;
}

}  // namespace precast::recipes
