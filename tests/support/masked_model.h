#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <vector>

#include "framework/api/model.h"

namespace precast::test {

/// A model with a weight, a statistic and a mask of -inf like that of attention. classify() returns
/// its input.
class MaskedModel final : public ImageModel {
 public:
  [[nodiscard]] at::Tensor classify(const at::Tensor& images) override { return images; }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    return {{"weight", weight}};
  }
  [[nodiscard]] std::vector<NamedTensor> state() const override {
    return {{"weight", weight}, {"mask", mask}, {"mean", mean}};
  }
  void train(bool /*training*/) override {}
  void to(at::Device /*device*/, bool /*channels_last*/) override {}

  at::Tensor weight = at::zeros({2}).requires_grad_(true);
  at::Tensor mask = at::full({2}, -std::numeric_limits<float>::infinity());
  at::Tensor mean = at::zeros({2});
};

}  // namespace precast::test
