#include "tools/experiments/grid/loss_axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;

class LossAxesTest : public ::testing::Test {
 protected:
  LossAxesTest() { write_recipe("training: {epochs: 1}"); }
  void write_recipe(const std::string& text) const {
    std::ofstream(folder_ / "r.yaml") << text << "\n";
  }
  std::vector<std::string> warnings(const std::string& sweep) const {
    std::ofstream(folder_ / "s.yaml") << "recipe: " << (folder_ / "r.yaml").string() << "\n"
                                      << sweep;
    return incomparable_losses(read_sweep(folder_ / "s.yaml"));
  }

  test::TemporaryFolder folder_;
};

TEST_F(LossAxesTest, WarnsIfAnAxisChangesTheLossThatRanks) {
  const std::string s = folder_ / "s.yaml";
  EXPECT_THAT(warnings("metric: val_loss\naxes: {training.label_smoothing: [0, 0.1]}"),
              ElementsAre(Names(s + ":3:35: training.label_smoothing", "val_loss", "top_1")));
  for (const char* axis : {"training.loss: [cross_entropy, bce]", "loss.sum_classes: [false, true]",
                           "validation.lr_tta: [0, 1]", "methods: [[ema], [ema, bce_loss]]",
                           "methods: [[], [label_smoothing: {smoothing: 0.2}]]"}) {
    const std::string key(axis, std::string(axis).find(':'));
    EXPECT_THAT(warnings("metric: val_loss\naxes: {lr.lr: [1, 2], " + std::string(axis) + "}"),
                ElementsAre(Names(key, "val_loss", "top_1")))
        << axis;
  }
  EXPECT_THAT(warnings("metric: train_loss\naxes: {training.label_smoothing: [0, 0.1]}"),
              ElementsAre(Names("training.label_smoothing", "train_loss")));
}

TEST_F(LossAxesTest, NamesAllSuchAxesAndAMetricOfTheTask) {
  write_recipe("training: {loss: mse}\nvalidation: {best_metric: val_loss}");
  EXPECT_THAT(warnings("axes: {training.loss: [mse, huber], lr.lr: [1, 2], loss.delta: [1, 2]}"),
              ElementsAre(Names("training.loss, loss.delta", "val_loss", "r2")));
}

TEST_F(LossAxesTest, WarnsAboutEarlyStopsToo) {
  const std::string axes = "\naxes: {training.label_smoothing: [0, 0.1]}";
  EXPECT_THAT(warnings("early_stop: {asha: {metric: val_loss}}" + axes),
              ElementsAre(Names("val_loss", "early_stop", "top_1")));
  EXPECT_THAT(warnings("metric: val_loss\nearly_stop: median" + axes),
              ElementsAre(Names("val_loss", "`metric`", "early_stop")));
}

TEST_F(LossAxesTest, IsSilentIfTheFiguresAreComparable) {
  EXPECT_THAT(warnings("axes: {training.label_smoothing: [0, 0.1]}\nearly_stop: median"),
              IsEmpty());
  for (const char* axes :
       {"lr.lr: [1, 2]", "training.label_smoothing: [0.1]", "loss.kernels: [auto, torch]",
        "methods: [[ema], [ema, mixup: {alpha: 0.2}]]",
        "methods: [[bce_loss], [bce_loss: {log_bias: true}]]",
        "methods: [[], [label_smoothing]]"}) {
    EXPECT_THAT(warnings("metric: val_loss\nset: {loss.x: 1}\naxes: {" + std::string(axes) + "}"),
                IsEmpty())
        << axes;
  }
  EXPECT_THAT(warnings("metric: train_loss\naxes: {validation.lr_tta: [0, 1]}"), IsEmpty());
}

}  // namespace
}  // namespace precast::tools
