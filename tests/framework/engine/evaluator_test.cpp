#include "framework/engine/evaluator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <optional>
#include <utility>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/process/stop_signals.h"
#include "tests/support/fake_parts.h"

namespace precast::engine {
namespace {

using test::ColourSource;
using test::LinearModel;
using test::MeanCrossEntropy;

bool go_on(std::int64_t /*samples*/) {
  return true;
}

EvalResult evaluate(Model& model, BatchSource& source) {
  return *Evaluator({.flip_tta = false})
              .evaluate(model, MeanCrossEntropy(), source, *make_single_rank(), go_on);
}

TEST(EvaluatorTest, CountsTopOneAndTopFiveExactly) {
  // Seven classes; images of class c have colour c % 3. For colour 0, the model ranks the classes
  // 0, 3, 6, 1, 4 (the top 5), 2, 5.
  LinearModel model(7);
  {
    const at::Tensor weight = model.weight.detach();
    const double colour_0[] = {9, 4, 2, 8, 3, 1, 7};
    for (int c = 0; c < 7; ++c) weight[c][0] = colour_0[c];
    weight[4][1] = 1;
  }
  // Samples of colour 0: labels 0 (top 1), 3 and 6 (top 5). Samples of colour 1: two with label 4
  // (top 1).
  ColourSource source({0, 3, 6, 4, 4}, 2);
  const EvalResult result = evaluate(model, source);
  EXPECT_EQ(result.samples, 5);
  EXPECT_EQ(result.top_1_correct, 3);
  EXPECT_EQ(result.top_5_correct, 5);
  EXPECT_DOUBLE_EQ(result.top_1(), 0.6);
  EXPECT_FALSE(model.training());
}

TEST(EvaluatorTest, CountsEachClass) {
  LinearModel model(3);
  // Colour 1 is predicted as class 2.
  for (const auto& [colour, taken_for] : {std::pair(0, 0), std::pair(1, 2), std::pair(2, 2)})
    model.weight.detach()[taken_for][colour] = 1;
  ColourSource source({0, 1, 2, 0, 1, 0}, 4);
  const auto result = Evaluator({.flip_tta = false, .num_classes = 3})
                          .evaluate(model, MeanCrossEntropy(), source, *make_single_rank(), go_on);
  std::vector<std::pair<std::int64_t, std::int64_t>> counts;
  for (const ClassCount& one : result->classes) counts.emplace_back(one.samples, one.top_1_correct);
  EXPECT_THAT(counts,
              testing::ElementsAre(testing::Pair(3, 3), testing::Pair(2, 0), testing::Pair(1, 1)));
}

TEST(EvaluatorTest, OutputsOfOtherClassesAreNotCountedByClass) {
  LinearModel model(3);
  ColourSource source({0, 1, 2}, 3);
  EXPECT_TRUE(evaluate(model, source).classes.empty());
  const auto result = Evaluator({.flip_tta = false, .num_classes = 4})
                          .evaluate(model, MeanCrossEntropy(), source, *make_single_rank(), go_on);
  EXPECT_TRUE(result->classes.empty());
}

/// Accepts labels that are not classes.
class IgnoresOthers final : public TargetLoss {
 public:
  at::Tensor mean(const at::Tensor& logits, const at::Tensor& /*labels*/) const override {
    return logits.sum() * 0;
  }
};

TEST(EvaluatorTest, LabelsThatAreNoClassCountForNone) {
  LinearModel model(3);
  ColourSource source({3, 4, 1}, 3);
  const auto result = Evaluator({.flip_tta = false, .num_classes = 3})
                          .evaluate(model, IgnoresOthers(), source, *make_single_rank(), go_on);
  ASSERT_EQ(result->classes.size(), 3U);
  EXPECT_EQ(result->classes[0].samples, 0);
  EXPECT_EQ(result->classes[1].samples, 1);
}

TEST(EvaluatorTest, FewerThanFiveClassesHaveATopFiveOfOne) {
  LinearModel model(3);
  ColourSource source({0, 1, 2}, 3);
  EXPECT_EQ(evaluate(model, source).top_5_correct, 3);
}

TEST(EvaluatorTest, LossIsTheMeanOverSamplesNotOverBatches) {
  LinearModel model(3);
  model.weight.detach()[0][0] = 2;
  ColourSource source({0, 1, 1}, 2);  // batches of 2 and 1
  const double colour_0 = std::log(std::exp(2.0) + 2) - 2;
  const double colour_1 = std::log(3.0);
  EXPECT_NEAR(evaluate(model, source).loss, (colour_0 + 2 * colour_1) / 3, 1e-6);
}

TEST(EvaluatorTest, IsCancelledOnRequest) {
  LinearModel model(3);
  ColourSource source({0, 1, 2, 0, 1}, 1);
  int batches = 0;
  const auto result = Evaluator({.flip_tta = false})
                          .evaluate(model, MeanCrossEntropy(), source, *make_single_rank(),
                                    [&](std::int64_t /*samples*/) { return ++batches < 3; });
  EXPECT_FALSE(result);
  EXPECT_EQ(batches, 3);
}

TEST(EvaluatorTest, IsCancelledIfTheSourceIsStoppedWhileItWaits) {
  std::optional<StopSignals> signals(std::in_place);
  LinearModel model(3);
  // Raises SIGTERM after two of three batches, and ends the pass.
  class Stalled final : public BatchSource {
   public:
    void begin_epoch(const EpochRequest& request) override { source_.begin_epoch(request); }
    std::optional<Batch> next() override {
      if (++batches_ < 3) return source_.next();
      std::raise(SIGTERM);
      return std::nullopt;
    }
    [[nodiscard]] std::int64_t size(int world) const override { return source_.size(world); }
    [[nodiscard]] std::int64_t samples() const override { return source_.samples(); }
    [[nodiscard]] double seconds_waited() const override { return 0; }

   private:
    ColourSource source_{{0, 1, 2}, 1};
    int batches_ = 0;
  } source;
  EXPECT_FALSE(Evaluator({.flip_tta = false})
                   .evaluate(model, MeanCrossEntropy(), source, *make_single_rank(), go_on));
  // Clears the stop request, which would stop the runs of later tests.
  signals.reset();
  signals.emplace();
}

TEST(EvaluatorTest, NoSamplesCountAsNothing) {
  LinearModel model(3);
  ColourSource source({}, 2);
  const EvalResult result = evaluate(model, source);
  EXPECT_EQ(result.samples, 0);
  EXPECT_EQ(result.top_1(), 0);
}

TEST(EvaluatorTest, PredictionsNeedASample) {
  LinearModel model(3);
  ColourSource source({}, 2);
  const auto ranks = make_single_rank();
  const auto predict = [&](BatchSource* samples) {
    static_cast<void>(Evaluator({.flip_tta = false}).predict(model, samples, *ranks, go_on));
  };
  EXPECT_THROW(predict(&source), DataError);
  EXPECT_THROW(predict(nullptr), DataError);
}

/// Counts the samples of class 0 and sums the labels.
class Classes final : public Metric {
 public:
  [[nodiscard]] std::string name() const override { return "classes"; }
  [[nodiscard]] std::int64_t sums() const override { return 2; }
  [[nodiscard]] at::Tensor count(const at::Tensor& /*outputs*/, const Batch& batch) const override {
    return at::stack({batch.target().eq(0).sum(), batch.target().sum()}).to(at::kDouble);
  }
  [[nodiscard]] double value(const at::Tensor& sums, std::int64_t samples) const override {
    return sums[1].item<double>() / static_cast<double>(samples) + 10 * sums[0].item<double>();
  }
};

TEST(EvaluatorTest, MetricsAreComputedFromSumsOverAllBatches) {
  LinearModel model(3);
  ColourSource source({0, 1, 2, 0, 1}, 2);
  const auto result = Evaluator({.metrics = {std::make_shared<Classes>()}})
                          .evaluate(model, MeanCrossEntropy(), source, *make_single_rank(), go_on);
  EXPECT_THAT(result->metrics, testing::ElementsAre(testing::Pair("classes", 4.0 / 5 + 20)));
}

TEST(EvaluatorTest, FlipSumsTheLogitsOfBothImages) {
  LinearModel model(3);
  model.weight.detach()[1][1] = 5;
  ColourSource source({0, 1}, 2);
  const at::Tensor plain =
      Evaluator({.flip_tta = false}).predict(model, &source, *make_single_rank(), go_on);
  const at::Tensor summed =
      Evaluator({.flip_tta = true}).predict(model, &source, *make_single_rank(), go_on);
  EXPECT_TRUE(summed.equal(plain + plain));
  EXPECT_EQ(summed.sizes(), (std::vector<std::int64_t>{2, 3}));
}

}  // namespace
}  // namespace precast::engine
