#pragma once

#include <ATen/ops/empty.h>

#include <cstdint>
#include <vector>

#include "framework/api/model.h"
#include "tests/recipes/toy_model.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {

/// A model with the state of a batch norm of 6 channels, as in the goldens of averages.
class NormModel final : public ImageModel {
 public:
  [[nodiscard]] at::Tensor classify(const at::Tensor& images) override { return images; }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    return {state_.begin(), state_.begin() + 2};
  }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return state_; }
  void train(bool) override {}
  void to(at::Device, bool) override {}

  /// Sets the values that the goldens use for this step.
  void set(std::uint32_t step) {
    for (std::uint32_t i = 0; i < 4; ++i) state_[i].tensor.copy_(noise_tensor(100 * step + i, {6}));
    state_[4].tensor.fill_(static_cast<std::int64_t>(step));
  }
  /// All values that are averaged.
  [[nodiscard]] std::vector<double> floats() const {
    std::vector<at::Tensor> all = values_of(state_);
    all.pop_back();
    return flat(all);
  }

 private:
  std::vector<NamedTensor> state_ = {{"weight", noise_tensor(1, {6})},
                                     {"bias", noise_tensor(1, {6})},
                                     {"running_mean", noise_tensor(1, {6})},
                                     {"running_var", noise_tensor(1, {6})},
                                     {"num_batches_tracked", at::empty({}, at::kLong)}};
};

}  // namespace precast::test
