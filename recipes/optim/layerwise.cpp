#include "recipes/optim/layerwise.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

namespace precast::recipes {

at::Tensor norms_of(const Tensors& tensors) {
  return at::stack(at::_foreach_norm(tensors));
}

void scale_layerwise(const Tensors& updates, const at::Tensor& ratios,
                     const at::Tensor& weight_norms, const at::Tensor& update_norms) {
  const at::Tensor adapts = at::logical_and(weight_norms > 0, update_norms > 0);
  at::_foreach_mul_(updates, at::where(adapts, ratios, at::ones_like(ratios)).unbind());
}

}  // namespace precast::recipes
