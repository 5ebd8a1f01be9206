#include "models/detail/norm_kernels.h"

#include "framework/api/model.h"

namespace precast::models {

HasNormKernels::~HasNormKernels() = default;

NormKernels norm_kernels(const Model& model) {
  const auto* known = dynamic_cast<const HasNormKernels*>(&model);
  return known == nullptr ? NormKernels{} : known->norm_kernels();
}

}  // namespace precast::models
