#include "framework/api/loss.h"

#include <ATen/ops/stack.h>

#include <vector>

namespace precast {

at::Tensor Loss::per_sample(const at::Tensor& outputs, const Batch& batch) const {
  std::vector<at::Tensor> losses;
  for (std::int64_t i = 0; i < outputs.size(0); ++i)
    losses.push_back((*this)(outputs.narrow(0, i, 1), batch.narrow(i, 1)));
  return at::stack(losses);
}

at::Tensor TargetLoss::each(const at::Tensor& outputs, const at::Tensor& target) const {
  std::vector<at::Tensor> losses;
  for (std::int64_t i = 0; i < outputs.size(0); ++i)
    losses.push_back(mean(outputs.narrow(0, i, 1), target.narrow(0, i, 1)));
  return at::stack(losses);
}

}  // namespace precast
