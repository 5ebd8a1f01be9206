#include "models/detail/stochastic_depth.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

namespace precast::models::detail {

std::vector<double> drop_rates(const StochasticDepthOptions& options, std::size_t blocks) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < blocks; ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(blocks);
    rates.push_back(options.drop_rate * (options.linear ? share : 1));
  }
  return rates;
}

at::Tensor drop_branch(const at::Tensor& branch, double drop_rate, bool per_sample) {
  if (drop_rate == 0) return branch;
  const double survival_rate = 1 - drop_rate;
  at::Tensor mask = at::empty({per_sample ? branch.size(0) : 1, 1, 1, 1}, branch.options());
  mask.bernoulli_(survival_rate).div_(survival_rate);
  return branch * mask;
}

}  // namespace precast::models::detail
