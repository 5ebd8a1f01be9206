// What a run can save and resume: the state of the model, the optimiser and the methods.
#include "framework/engine/state_checks.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "tests/support/lone_rank.h"
#include "tests/support/masked_model.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::engine {
namespace {

using test::Names;
using testing::ThrowsMessage;

/// An optimiser or a method whose state the test sets.
template <typename Part>
class WithState : public Part {
 public:
  [[nodiscard]] State state() const override { return stored; }
  State stored;
};
class OptimizerWithState final : public WithState<Optimizer> {
 public:
  void step(double /*lr*/, const std::optional<Scaled>& /*scaled*/) override {}
};
class MethodWithState final : public WithState<Method> {
 public:
  [[nodiscard]] bool evaluates_averages() const override { return averages; }
  bool averages = false;
};

class StateChecksTest : public ::testing::Test {
 protected:
  StateChecksTest() {
    auto method = std::make_unique<MethodWithState>();
    method_ = method.get();
    methods_.push_back({"noting", std::move(method)});
    state_.loss_sum = at::zeros({}, at::kDouble);
    state_.loss_count = at::zeros({}, at::kDouble);
  }
  CheckpointParts parts(Communicator& ranks) {
    return {model_, optimizer_, methods_, ranks, at::kCPU};
  }
  std::unique_ptr<Checkpointer> make_checkpointer() {
    return std::make_unique<Checkpointer>(CheckpointOptions{.folder = folder_.path()},
                                          parts(*ranks_), nlohmann::ordered_json(),
                                          [](const nlohmann::ordered_json& /*saved*/) {});
  }
  [[nodiscard]] bool saves(Checkpointer& checkpointer) {
    ++state_.global_step;
    const bool saved = checkpointer.save(state_, std::nullopt);
    checkpointer.finish();
    return saved;
  }

  const test::TemporaryFolder folder_;
  test::MaskedModel model_;
  OptimizerWithState optimizer_;
  std::vector<NamedMethod> methods_;
  MethodWithState* method_ = nullptr;
  std::unique_ptr<Communicator> ranks_ = make_single_rank();
  TrainState state_;
};

TEST_F(StateChecksTest, ABufferMayStayInfiniteButNothingElseMayBecomeInfinite) {
  const auto checkpointer = make_checkpointer();
  checkpointer->attach(nullptr, {});
  EXPECT_TRUE(saves(*checkpointer));
  for (const at::Tensor& tensor : {model_.weight.detach(), model_.mean}) {
    tensor.fill_(NAN);
    EXPECT_FALSE(saves(*checkpointer));
    tensor.zero_();
    EXPECT_TRUE(saves(*checkpointer));
  }
  state_.loss_sum.fill_(NAN);
  EXPECT_FALSE(saves(*checkpointer));
}

TEST_F(StateChecksTest, AWeightThatIsInfiniteAtTheStartIsNotSaved) {
  model_.weight.detach().fill_(NAN);
  const auto checkpointer = make_checkpointer();
  checkpointer->attach(nullptr, {});
  EXPECT_FALSE(saves(*checkpointer));
}

TEST_F(StateChecksTest, WhatCheckpointsCannotStoreIsRefusedBeforeTheFirstStep) {
  const std::vector<NamedTensor> twice = {{"c", at::zeros({2})}, {"c", at::zeros({2})}};
  const std::vector<NamedTensor> complex = {{"c", at::empty({2}, at::kComplexFloat)}};
  const std::vector<NamedTensor> undefined = {{"c", at::Tensor()}};
  for (const auto& tensors : {twice, complex, undefined}) {
    for (const auto& [stored, part] : {std::pair(&optimizer_.stored, "optimizer"),
                                       std::pair(&method_->stored, "method noting")}) {
      stored->tensors = tensors;
      EXPECT_THAT([&] { make_checkpointer()->attach(nullptr, {}); },
                  ThrowsMessage<ConfigError>(Names(part, "'c'")));
      stored->tensors.clear();
    }
  }
}

TEST_F(StateChecksTest, TensorsThatAreMadeOrChangedLaterAreNamed) {
  for (const auto& [stored, part] :
       {std::pair(&optimizer_.stored, "optimizer"), std::pair(&method_->stored, "method noting")}) {
    stored->tensors = {{"a", at::zeros({2})}};
    const auto checkpointer = make_checkpointer();
    checkpointer->attach(nullptr, {});
    EXPECT_TRUE(saves(*checkpointer));
    const std::vector<NamedTensor> added = {{"a", at::zeros({2})}, {"fc.v", at::zeros({4})}};
    const std::vector<NamedTensor> resized = {{"a", at::zeros({3})}};
    const std::vector<NamedTensor> retyped = {{"a", at::zeros({2}, at::kLong)}};
    for (const auto& [tensors, name] :
         {std::pair(added, "fc.v"), std::pair(resized, "[3]"), std::pair(retyped, "Long")}) {
      stored->tensors = tensors;
      EXPECT_THAT([&] { static_cast<void>(saves(*checkpointer)); },
                  ThrowsMessage<Error>(Names(part, name)));
    }
    stored->tensors.clear();
    EXPECT_THAT([&] { static_cast<void>(saves(*checkpointer)); },
                ThrowsMessage<Error>(Names(part, "a (Float [2])")));
    stored->tensors = {{"a", at::zeros({2})}};
    EXPECT_TRUE(saves(*checkpointer));
    stored->tensors.clear();
  }
}

/// One of two ranks. The other rank sends `other` or, if that is empty, the same text as this rank.
class OneOfTwo final : public test::LoneRank {
 public:
  OneOfTwo(int rank, std::string other) : LoneRank(rank, 2), other_(std::move(other)) {}
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text) override {
    sent.push_back(text);
    if (other_.empty()) return {text, text};
    return rank() == 0 ? std::vector{text, other_} : std::vector{other_, text};
  }
  std::vector<std::string> sent;

 private:
  std::string other_;
};

TEST_F(StateChecksTest, AStateThatDiffersBetweenTheRanksIsNamedOnce) {
  const auto compared = [&](int rank, const State& state, const std::string& other) {
    method_->stored = state;
    OneOfTwo ranks(rank, other);
    StateChecks checks(parts(ranks));
    testing::internal::CaptureStderr();
    for (int save = 0; save < 2; ++save) checks.compare_ranks();
    EXPECT_EQ(ranks.sent.size(), 1U);
    return std::pair(testing::internal::GetCapturedStderr(), ranks.sent.front());
  };
  const State zeros{{{"mine", at::zeros({2})}}, {{"steps", 4}}};
  const State ones{{{"mine", at::full({2}, 1)}}, {{"steps", 4}}};
  const State later{{{"mine", at::zeros({2})}}, {{"steps", 5}}};
  const std::string sent = compared(1, zeros, "").second;
  EXPECT_EQ(compared(0, zeros, sent).first, "");
  EXPECT_THAT(compared(0, ones, sent).first, Names("warning", "noting", "rank 1"));
  EXPECT_THAT(compared(0, later, sent).first, Names("warning", "noting", "rank 1"));
  EXPECT_EQ(compared(1, ones, sent).first, "") << "only rank 0 warns";
  // Averages of running statistics may differ between ranks, like the statistics themselves.
  method_->averages = true;
  const std::string averages = compared(1, zeros, "").second;
  EXPECT_EQ(compared(0, ones, averages).first, "");
}

}  // namespace
}  // namespace precast::engine
