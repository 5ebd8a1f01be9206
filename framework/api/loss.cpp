#include "framework/api/loss.h"

#include <ATen/ops/stack.h>

#include <vector>

namespace precast {

at::Tensor Loss::per_sample(const at::Tensor& logits, const at::Tensor& labels) const {
  std::vector<at::Tensor> losses;
  for (std::int64_t i = 0; i < logits.size(0); ++i)
    losses.push_back((*this)(logits.narrow(0, i, 1), labels.narrow(0, i, 1)));
  return at::stack(losses);
}

}  // namespace precast
