#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tools/app/recipe.h"

namespace precast::tools {
namespace {

/// A mask of 2 x 2 px with the classes 1 and 2, in which one pixel is `ignored`, and outputs that
/// predict the classes of all other pixels correctly.
class RecipeMetricsTest : public ::testing::Test {
 protected:
  /// The values of the metrics of a recipe with these lines.
  std::vector<double> values(const std::string& lines, std::int64_t ignored,
                             const std::string& loss = "pixel_cross_entropy") {
    std::ofstream(folder_ / "r.yaml")
        << "model: {num_classes: 3}\ntraining: {loss: " << loss << "}\n"
        << lines;
    const Recipe recipe = load_recipe(folder_ / "r.yaml", {}, registries_);
    const at::Tensor mask = at::tensor({1L, 2L, ignored, 1L}, at::kLong).view({1, 2, 2});
    at::Tensor outputs = at::zeros({1, 3, 2, 2});
    outputs[0][1].fill_(1);
    outputs[0][2][0][1] = 2;
    const Batch batch = make_batch({}, mask);
    std::vector<double> all;
    for (const auto& metric : recipe.metrics)
      all.push_back(metric->value(metric->count(outputs, batch), 1));
    return all;
  }

  test::TemporaryFolder folder_;
  Registries registries_ = make_registries();
};

TEST_F(RecipeMetricsTest, MetricsIgnoreTheClassThatTheLossIgnores) {
  const std::string loss = "loss: {ignore_index: 0}\n";
  EXPECT_EQ(values(loss, 0), (std::vector<double>{1, 1})) << "mean_iou, per_class_accuracy";
  EXPECT_EQ(values(loss + "validation: {metrics: [mean_iou]}\n", 0), std::vector<double>{1});
  EXPECT_EQ(values(loss + "validation: {metrics: [per_class_accuracy: {}]}\n", 0),
            std::vector<double>{1});
  EXPECT_EQ(values("", 255), (std::vector<double>{1, 1})) << "the default of the loss";
}

TEST_F(RecipeMetricsTest, AnOptionOfTheMetricOverridesThatOfTheLoss) {
  const std::string loss = "loss: {ignore_index: 0}\n";
  // Class 0 is never predicted, and its pixel is predicted as class 1, which has two pixels.
  EXPECT_NEAR(values(loss + "validation: {metrics: [mean_iou: {ignore_index: 255}]}\n", 0).at(0),
              (0 + 2.0 / 3 + 1) / 3, 1e-12);
  EXPECT_EQ(values("validation: {metrics: [mean_iou: {ignore_index: 0}]}\n", 0),
            std::vector<double>{1});
}

/// A loss of a plug-in, which ignores a negative class, as torch does by default.
struct NegativeIgnored {
  std::int64_t ignore_index = -100;
  void options(Schema& schema) { schema.add("ignore_index", &ignore_index, "ignored class"); }
};
class MaskLoss final : public TargetLoss {
 public:
  [[nodiscard]] TargetKind target_kind() const override { return TargetKind::class_mask; }
  [[nodiscard]] at::Tensor mean(const at::Tensor& outputs,
                                const at::Tensor& /*target*/) const override {
    return outputs.mean();
  }
  [[nodiscard]] at::Tensor each(const at::Tensor& outputs,
                                const at::Tensor& /*target*/) const override {
    return outputs.flatten(1).mean(1);
  }
};

TEST_F(RecipeMetricsTest, ALossMayIgnoreANegativeClass) {
  registries_.losses.add<NegativeIgnored>("mask_loss", "", [](const NegativeIgnored& /*options*/) {
    return std::make_unique<MaskLoss>();
  });
  EXPECT_EQ(values("", -100, "mask_loss"), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace precast::tools
