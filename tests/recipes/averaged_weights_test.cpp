// Tests which tensors of a model ema and swa average.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "framework/api/method.h"
#include "framework/api/run_facts.h"
#include "tests/recipes/make_method.h"
#include "tests/support/masked_model.h"

namespace precast::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(AveragedWeightsTest, BuffersThatAreNotFiniteAreCopied) {
  for (const auto& [name, options] : {std::pair("ema", "{decay: 0.5}"), {"swa", "{start: 0}"}}) {
    SCOPED_TRACE(name);
    MaskedModel model;
    const auto method = make_method(name, options);
    method->on_run({.epochs = 3, .steps_per_epoch = 1});
    method->on_train_begin(model);
    method->on_step_end(model, 0);
    model.weight.detach().fill_(4);
    model.mean.fill_(8);
    method->on_step_end(model, 1);
    {
      const auto guard = method->eval_scope(model);
      EXPECT_TRUE(model.weight.equal(at::full({2}, 2.0F)));
      EXPECT_TRUE(model.mean.equal(at::full({2}, 4.0F)));
      EXPECT_TRUE(model.mask.equal(at::full({2}, -kInfinity)));
    }
    EXPECT_TRUE(model.mask.equal(at::full({2}, -kInfinity)));
    model.mask.fill_(kInfinity);
    method->on_step_end(model, 2);
    const auto guard = method->eval_scope(model);
    EXPECT_TRUE(model.mask.equal(at::full({2}, kInfinity)));
  }
}

}  // namespace
}  // namespace precast::test
