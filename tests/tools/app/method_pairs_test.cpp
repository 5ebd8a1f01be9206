#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/core/error.h"
#include "framework/engine/trainer.h"
#include "models/resnet.h"
#include "tests/support/fake_parts.h"
#include "tests/support/message_matchers.h"
#include "tests/support/noise_tensor.h"
#include "tools/app/assembly.h"
#include "tools/app/plan.h"
#include "tools/app/session.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

using test::Names;

constexpr std::int64_t kSamples = 8;
constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kClasses = 5;
constexpr std::int64_t kSizePx = 16;

/// Images of noise, the same in every epoch.
class NoiseSource final : public BatchSource {
 public:
  void begin_epoch(const EpochRequest& request) override { place_ = request.first_batch * kBatch; }
  std::optional<Batch> next() override {
    if (place_ >= kSamples) return std::nullopt;
    const auto stream = static_cast<std::uint32_t>(place_);
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < kBatch; ++i) labels.push_back((place_ + i) % kClasses);
    place_ += kBatch;
    return Batch{.fields = {{"image", test::noise_tensor(stream, {kBatch, 3, kSizePx, kSizePx}, 4)},
                            {"label", at::tensor(labels, at::kLong)}},
                 .sample_ids = std::vector<std::uint64_t>(kBatch)};
  }
  [[nodiscard]] std::int64_t size(int /*world*/) const override { return kSamples / kBatch; }
  [[nodiscard]] std::int64_t samples() const override { return kSamples; }
  [[nodiscard]] double seconds_waited() const override { return 0; }

 private:
  std::int64_t place_ = 0;
};

/// A residual network of four blocks, the smallest to which all methods apply.
std::unique_ptr<Model> make_resnet10(const ModelSpec& spec, const models::ResNetOptions& options) {
  return models::make_resnet({.bottleneck = false, .blocks = {1, 1, 1, 1}}, spec, options);
}

Registries registries_with_resnet10() {
  Registries registries = make_registries();
  registries.models.add("resnet10", "four blocks", make_resnet10);
  return registries;
}

/// Trains two epochs of two steps. @return the losses of all steps, then the loss of the
/// evaluation. @throws ConfigError if the recipe is rejected.
std::vector<double> train(const std::string& methods) {
  static Registries registries = registries_with_resnet10();
  // The images are too small to occupy two threads.
  at::set_num_threads(1);
  std::vector<std::string> keys = {"--methods=" + methods,
                                   "--model.arch=resnet10",
                                   "--training.batch_size=" + std::to_string(kBatch),
                                   "--training.epochs=2",
                                   "--training.device=cpu",
                                   "--lr.lr=0.01"};
  // A key that corresponds to a method must not be given together with the method.
  if (methods.find("label_smoothing") == methods.npos)
    keys.emplace_back("--training.label_smoothing=0");
  if (methods.find("progressive_resize") == methods.npos)
    keys.insert(keys.end(), {"--resolution.min_res=16", "--resolution.max_res=16"});
  const Recipe recipe = load_recipe("", take_overrides(keys), registries);
  const ResolvedRun run = requested_run(recipe);
  RankSession ranks(recipe.config, {}, run.device);
  Assembly parts(run, make_plan(run, registries, kSamples, kClasses), registries, ranks);
  NoiseSource train_source;
  NoiseSource val_source;
  const engine::Evaluator evaluator({.image_size_px = kSizePx, .flip_tta = false});
  test::MemorySink sink;
  engine::Trainer trainer(parts.plan(),
                          {.model = parts.model(),
                           .loss = parts.loss(),
                           .optimizer = parts.optimizer(),
                           .methods = recipe.methods,
                           .train_source = train_source,
                           .val_source = val_source,
                           .evaluator = evaluator,
                           .ranks = ranks.communicator(),
                           .sync = parts.sync(),
                           .sinks = {&sink}},
                          {.evaluate_each_epoch = false, .log_every = 1});
  trainer.start();
  const engine::TrainSummary summary = trainer.run();
  std::vector<double> losses;
  for (const std::string& record : sink.records) {
    const auto line = nlohmann::json::parse(record);
    if (line.contains("loss")) losses.push_back(line.at("loss"));
  }
  losses.push_back(summary.final_eval->loss);
  return losses;
}

/// Every method, with options that let it take effect within four steps.
const std::map<std::string, std::string>& acting() {
  static const std::map<std::string, std::string> all = {
      {"blurpool", "{}"},
      {"label_smoothing", "{}"},
      {"progressive_resize", "{min_res: 16, max_res: 16}"},
      {"channels_last", "{}"},
      {"gradient_clipping", "{}"},
      {"adaptive_gradient_clipping", "{}"},
      {"ghost_batch_norm", "{size: 2}"},
      {"mixup", "{}"},
      {"cutmix", "{}"},
      {"mixup_or_cutmix", "{}"},
      {"ema", "{decay: 0.5}"},
      {"swa", "{start: 0}"},
      {"squeeze_excite", "{}"},
      {"stochastic_depth", "{}"},
      {"zero_init_residual", "{}"},
      {"bce_loss", "{}"},
      {"layer_freezing", "{freeze_start: 0}"},
      {"batch_resize", "{delay_fraction: 0, size_increment: 2}"},
      {"scale_schedule", "{ratio: 1.5}"},
      {"sam", "{}"},
      {"selective_backprop", "{start: 0, end: 1, interrupt: 0}"}};
  return all;
}

/// Pairs of methods that are rejected when a recipe lists them in this order.
const std::set<std::pair<std::string, std::string>>& refused() {
  static const std::set<std::pair<std::string, std::string>> all = {
      // Both replace the step.
      {"sam", "selective_backprop"},
      {"selective_backprop", "sam"},
      // Both determine which average is evaluated.
      {"ema", "swa"},
      {"swa", "ema"},
      // Cropping a mixed image changes the share of each source image, so the mixed label would be
      // wrong.
      {"cutmix", "batch_resize"},
      {"mixup_or_cutmix", "batch_resize"},
      // scale_schedule stretches the schedule of image sizes, so progressive_resize must come
      // first.
      {"scale_schedule", "progressive_resize"}};
  return all;
}

class MethodPairsTest : public ::testing::TestWithParam<std::string> {};

TEST(MethodPairs, KnowsEveryMethod) {
  Registries registries = make_registries();
  std::set<std::string> known;
  for (const auto& [name, options] : acting()) known.insert(name);
  const auto names = registries.methods.names();
  EXPECT_EQ(known, std::set<std::string>(names.begin(), names.end()));
}

TEST_P(MethodPairsTest, TrainsOrIsRefusedWithAReason) {
  const std::string& first = GetParam();
  for (const auto& [second, options] : acting()) {
    if (second == first) continue;
    SCOPED_TRACE(first + ", " + second);
    const std::string list =
        fmt::format("[{{{}: {}}}, {{{}: {}}}]", first, acting().at(first), second, options);
    const bool is_refused = refused().contains({first, second});
    try {
      const std::vector<double> losses = train(list);
      EXPECT_FALSE(is_refused) << "expected an error";
      // scale_schedule turns the two epochs into three.
      EXPECT_EQ(losses.size(), first == "scale_schedule" || second == "scale_schedule" ? 7U : 5U);
      for (const double loss : losses) EXPECT_TRUE(std::isfinite(loss));
    } catch (const ConfigError& error) {
      ASSERT_TRUE(is_refused) << error.what();
      EXPECT_THAT(error.what(), Names("methods", first, second));
    }
  }
}

std::vector<std::string> names_of_methods() {
  std::vector<std::string> names;
  for (const auto& [name, options] : acting()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(First, MethodPairsTest, ::testing::ValuesIn(names_of_methods()),
                         [](const auto& name) { return name.param; });

TEST(MethodsTest, MethodsOfZeroStrengthLeaveTheLossesUnchanged) {
  const std::vector<double> plain = train("[]");
  for (const std::string method :
       {"label_smoothing: {smoothing: 0}", "gradient_clipping: {max_norm: 1e9}",
        "adaptive_gradient_clipping: {threshold: 1e9}", "ghost_batch_norm: {size: 4}",
        "mixup: {probability: 0}", "cutmix: {probability: 0}", "mixup_or_cutmix: {probability: 0}",
        "ema: {decay: 0}", "swa: {start: 1}", "progressive_resize: {min_res: 16, max_res: 16}",
        "squeeze_excite: {min_channels: 100000}", "stochastic_depth: {drop_rate: 0}",
        "layer_freezing: {freeze_level: 0}", "batch_resize: {initial_scale: 1}",
        "scale_schedule: {ratio: 1}", "sam: {rho: 0}", "selective_backprop: {keep: 1}"}) {
    EXPECT_EQ(train("[{" + method + "}]"), plain) << method;
  }
}

TEST(MethodsTest, MethodsWithStrengthChangeTheLosses) {
  const std::vector<double> plain = train("[]");
  for (const auto& [name, options] : acting()) {
    // channels_last and these sizes of progressive_resize are the defaults.
    if (name == "channels_last" || name == "progressive_resize") continue;
    EXPECT_NE(train(fmt::format("[{{{}: {}}}]", name, options)), plain) << name;
  }
}

TEST(MethodsTest, AModelThatDoesNotKnowAMethodRefusesIt) {
  Registries registries = make_registries();
  registries.models.add("plain", "without options", [](const ModelSpec& spec) {
    return std::make_unique<test::LinearModel>(spec.num_classes);
  });
  for (const std::string name : {"squeeze_excite", "stochastic_depth", "zero_init_residual"}) {
    std::vector<std::string> keys = {"--model.arch=plain", "--methods=[" + name + "]"};
    try {
      static_cast<void>(load_recipe("", take_overrides(keys), registries));
      ADD_FAILURE() << "accepted: " << name;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), Names("method " + name, "model plain", "model.params." + name));
    }
  }
}

TEST(MethodsTest, AnOptionGivenTwiceIsRefused) {
  Registries registries = make_registries();
  std::vector<std::string> keys = {"--methods=[zero_init_residual]",
                                   "--model.params={zero_init_residual: false}"};
  try {
    static_cast<void>(load_recipe("", take_overrides(keys), registries));
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Names("model.params.zero_init_residual"));
  }
}

}  // namespace
}  // namespace precast::tools
