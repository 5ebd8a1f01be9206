#include "tools/app/weights_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>

#include "framework/core/error.h"
#include "framework/engine/weights.h"
#include "tests/models/golden_model.h"
#include "tests/support/message_matchers.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tools/app/plan.h"
#include "tools/app/session.h"

namespace precast::tools {
namespace {

using test::NamesMatcher;

constexpr std::int64_t kClasses = 10;

Recipe make_recipe(const std::vector<std::string>& keys, Registries& registries) {
  std::vector<Override> overrides;
  Diagnostics diagnostics;
  for (const std::string& key : keys) {
    const std::size_t split = key.find('=');
    overrides.push_back(
        {key.substr(0, split), parse_override(key.substr(split + 1), {"test", 1, 1}, diagnostics)});
  }
  diagnostics.throw_if_errors();
  return load_recipe("", overrides, registries, RecipeUse::evaluate);
}

/// Tensors with the names, shapes and order of a golden that Python wrote, and with the values from
/// which the golden's logits were computed. Blur filters have fixed values; formula() gives all
/// others.
class PythonWeights {
 public:
  explicit PythonWeights(const std::string& golden) {
    std::ifstream lines(test::golden_dir() + "/torchvision/" + golden);
    std::uint32_t stream = 0;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name;
      words >> name;
      std::vector<std::int64_t> shape(std::istream_iterator<std::int64_t>(words), {});
      if (name.starts_with("fc.")) shape[0] = kClasses;
      const bool filter = name.ends_with("blur_filter");
      add(name, shape, filter ? 0 : stream);
      if (!filter) ++stream;
    }
  }
  void add(const std::string& name, const std::vector<std::int64_t>& shape, std::uint32_t stream) {
    const bool count = name.ends_with("num_batches_tracked");
    const DType dtype = count ? DType::i64 : DType::f32;
    bytes_.emplace_back(*byte_count(dtype, shape));
    if (!count) fill(name, shape, stream);
    records_.push_back({name, dtype, shape, bytes_.back()});
  }
  [[nodiscard]] const std::vector<TensorRecord>& records() const { return records_; }

 private:
  void fill(const std::string& name, const std::vector<std::int64_t>& shape, std::uint32_t stream) {
    auto* values = reinterpret_cast<float*>(bytes_.back().data());
    const std::size_t count = bytes_.back().size() / sizeof *values;
    for (std::size_t i = 0; i < count; ++i) {
      constexpr float kFilter[] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
      values[i] = name.ends_with("blur_filter")
                      ? kFilter[i % 9] / 16
                      : static_cast<float>(formula(name, shape, stream, i));
    }
  }
  static double formula(const std::string& name, const std::vector<std::int64_t>& shape,
                        std::uint32_t stream, std::size_t i) {
    const double u = test::noise(stream, static_cast<std::uint32_t>(i));
    if (shape.size() >= 2) {
      const auto inputs =
          static_cast<double>(*element_count(shape)) / static_cast<double>(shape[0]);
      return u * (4 / std::sqrt(inputs));
    }
    if (name.ends_with("running_var")) return 1 + u;
    return name.ends_with("weight") ? 1 + 0.5 * u : 0.2 * u;
  }

  std::vector<std::vector<std::byte>> bytes_;
  std::vector<TensorRecord> records_;
};

class WeightsCheckTest : public ::testing::Test {
 protected:
  static constexpr const char* kBlur = "training.use_blurpool=1";

  /// Writes the same weights of ResNet-18 in the form of each program.
  void write_files() {
    const auto save = [&](const std::string& name, const PythonWeights& weights,
                          const std::map<std::string, std::string>& metadata = {}) {
      save_weights(folder_ / name, weights.records(), metadata);
    };
    const PythonWeights plain("resnet18_state.txt");
    save("torchvision.pt", plain);
    save("timm.pt", PythonWeights("resnet18_timm_state.txt"));
    save("ffcv.pt", PythonWeights("resnet18_ffcv_state.txt"));
    // The buffer of timm's BlurPool2d, which older versions saved.
    PythonWeights timm_aa("resnet18_timm_state.txt");
    timm_aa.add("layer2.0.aa.filt", {1, 1, 3, 3}, 0);
    save("timm_aa.pt", timm_aa);
    for (const bool blurpool : {false, true}) {
      const std::string name = blurpool ? "blurred" : "plain";
      const auto keys = blurpool ? std::vector<std::string>{kBlur} : std::vector<std::string>{};
      const WeightsSpec spec = spec_of_network(keys);
      test::fill_by_formula(*model_);
      engine::save_model_weights(*model_, folder_ / name, spec);
      save(name + "_checkpoint.safetensors", plain, weights_metadata(spec));
    }
  }

  /// Creates `recipe_`, `plan_` and `model_`. @return the model spec of the network.
  WeightsSpec spec_of_network(const std::vector<std::string>& keys) {
    recipe_ = make_recipe(keys, registries_);
    plan_ = make_plan(requested_run(recipe_), registries_, 0, kClasses);
    model_ = make_model(registries_.models, plan_.model);
    return describe_weights(recipe_, plan_, registries_, *model_, nullptr);
  }
  /// Loads the weights like eval and predict. @return the logits of the golden's images.
  at::Tensor logits(const std::string& file, std::vector<std::string> keys) {
    keys.push_back("model.weights=" + (folder_ / file).string());
    recipe_ = make_recipe(keys, registries_);
    const ResolvedRun run = requested_run(recipe_);
    plan_ = make_plan(run, registries_, 0, kClasses);
    model_ = build_model(run, plan_, registries_, WeightsUse::evaluate, nullptr);
    model_->train(false);
    const at::NoGradGuard no_grad;
    return model_->forward(make_batch(test::noise_tensor(1000, {4, 3, 72, 72}, 4)));
  }
  /// @return the largest difference from Python's logits, relative to the largest of them.
  static double error(const at::Tensor& logits, bool blurpool) {
    const auto& golden =
        test::torchvision_golden()["outputs"][blurpool ? "resnet18+blurpool" : "resnet18"];
    const at::Tensor expected =
        at::tensor(golden["eval_logits"].get<std::vector<double>>(), at::kDouble)
            .view({4, kClasses});
    return (logits.to(at::kDouble) - expected).abs().max().item<double>() /
           expected.abs().max().item<double>();
  }
  std::string problem(const std::function<void()>& work) {
    try {
      work();
    } catch (const CheckpointError& refused) {
      return refused.what();
    }
    return "";
  }
  /// The error or the warning of check_weights() for a file with the spec `there`.
  std::string compared(const WeightsSpec& there, const WeightsSpec& here, WeightsUse use,
                       bool strict = true) {
    const std::vector<std::byte> bytes(4);
    const std::vector<TensorRecord> records = {{"w", DType::f32, {1}, bytes}};
    save_weights(folder_ / "w.pt", records, weights_metadata(there));
    testing::internal::CaptureStderr();
    const std::string refused =
        problem([&] { check_weights(load_weights(folder_ / "w.pt"), here, use, strict); });
    const std::string warned = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(refused.empty() || warned.empty());
    return refused.empty() ? warned : "refused " + refused;
  }

  test::TemporaryFolder folder_;
  Registries registries_ = make_registries();
  Recipe recipe_;
  TrainPlan plan_;
  std::unique_ptr<Model> model_;
};

/// A file, a network, and the facts that the error must name. Without facts, the file fits the
/// network.
struct Pairing {
  const char* file;
  bool blurpool;
  std::vector<std::string> facts;
  bool strict = true;
};

TEST_F(WeightsCheckTest, MatchingPairsGivePythonsLogitsAndOthersNameTheDifference) {
  write_files();
  const std::vector<std::string> lost = {"blurpool", "true", "false"};
  const std::vector<std::string> unknown = {"blurpool", "unknown", "true", "model.weights_check"};
  const std::vector<std::string> filters = {"blurpool", "layer2.0.conv1", "blur_filter"};
  const std::vector<Pairing> pairings = {
      {"plain.pt", false, {}},
      {"plain.safetensors", false, {}},
      {"plain_checkpoint.safetensors", false, {}},
      {"torchvision.pt", false, {}},
      {"timm.pt", false, {}},
      {"blurred.pt", false, lost},
      {"blurred.safetensors", false, filters},
      {"blurred_checkpoint.safetensors", false, lost},
      {"ffcv.pt", false, filters},
      {"timm_aa.pt", false, {"layer2.0.aa.filt"}},
      {"plain.pt", true, lost},
      {"plain.safetensors", true, lost},
      {"plain_checkpoint.safetensors", true, lost},
      {"torchvision.pt", true, unknown},
      {"timm.pt", true, unknown},
      {"timm_aa.pt", true, unknown},
      {"blurred.pt", true, {}},
      {"blurred.safetensors", true, {}},
      {"blurred_checkpoint.safetensors", true, {}},
      {"ffcv.pt", true, {}},
      // With model.weights_check=off, the user declares that the file fits the network.
      {"torchvision.pt", true, {}, false},
      {"plain.pt", true, {}, false},
      {"ffcv.pt", false, {}, false},
  };
  for (const Pairing& pairing : pairings) {
    SCOPED_TRACE(std::string(pairing.file) + (pairing.blurpool ? " with BlurPool" : ""));
    std::vector<std::string> keys;
    if (pairing.blurpool) keys.emplace_back(kBlur);
    if (!pairing.strict) keys.emplace_back("model.weights_check=off");
    const std::string refused =
        problem([&] { EXPECT_LE(error(logits(pairing.file, keys), pairing.blurpool), 1e-4); });
    EXPECT_EQ(refused.empty(), pairing.facts.empty()) << refused;
    if (!pairing.facts.empty()) {
      std::vector<std::string> facts = pairing.facts;
      facts.push_back((folder_ / pairing.file).string());
      EXPECT_THAT(refused, NamesMatcher(facts));
    }
  }
  // The goldens with and without BlurPool differ.
  EXPECT_GT(error(logits("plain.pt", {}), true), 1e-2);
}

TEST_F(WeightsCheckTest, TheDescriptionHoldsWhatTheRecipeSays) {
  const WeightsSpec plain = spec_of_network({"model.params={log_bias: false}"});
  EXPECT_EQ(plain.arch, "resnet18");
  EXPECT_TRUE(plain.params.empty());
  EXPECT_TRUE(plain.blurred.empty());
  EXPECT_EQ(plain.num_classes, kClasses);
  EXPECT_THAT(plain.mean, testing::ElementsAre(0.485 * 255, 0.456 * 255, 0.406 * 255));
  EXPECT_EQ(plain.resolution_px, 224);
  const WeightsSpec other = spec_of_network(
      {kBlur, "methods=[squeeze_excite: {latent_channels: 8}]", "validation.resolution=64",
       "pipeline.val=[center_crop, normalize: {mean: [1, 2, 3], std: [4, 5, 6]}]"});
  EXPECT_TRUE(other.blurpool);
  EXPECT_EQ(other.blurred.size(), 6U);
  EXPECT_EQ(other.blurred.at("layer3.0.downsample.0"), 128);
  EXPECT_EQ(other.params.at("squeeze_excite.latent_channels"), "8.0");
  EXPECT_THAT(other.mean, testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(other.std, testing::ElementsAre(4, 5, 6));
  EXPECT_EQ(other.resolution_px, 64);
}

TEST_F(WeightsCheckTest, TheNormalisationIsThatOfTheFirstImageWhereverItIsListed) {
  const std::string image = "image: [whole_image, normalize: {mean: [1, 2, 3], std: [4, 5, 6]}]";
  for (const std::string& outputs :
       {image + ", label: label", "label: label, " + image, "ids: sample_id, " + image,
        "mask: {geometry_of: image}, " + image}) {
    const WeightsSpec spec = spec_of_network({"pipeline.val={" + outputs + "}"});
    EXPECT_THAT(spec.mean, testing::ElementsAre(1, 2, 3)) << outputs;
    EXPECT_THAT(spec.std, testing::ElementsAre(4, 5, 6)) << outputs;
  }
  const WeightsSpec standard = spec_of_network({"pipeline.val={label: label, image: image}"});
  EXPECT_EQ(standard.mean, spec_of_network({}).mean);
}

TEST_F(WeightsCheckTest, ATensorCalledFilterIsOneOnlyIfTheSpecSaysSo) {
  const WeightsSpec here = spec_of_network({});
  const std::vector<std::byte> bytes(4);
  const std::vector<TensorRecord> records = {{"a.blur_filter", DType::f32, {1}, bytes}};
  const auto problem_of = [&](const std::map<std::string, std::string>& metadata) {
    save_weights(folder_ / "w.pt", records, metadata);
    return problem(
        [&] { check_weights(load_weights(folder_ / "w.pt"), here, WeightsUse::evaluate, true); });
  };
  EXPECT_EQ(problem_of(weights_metadata(here)), "");
  EXPECT_THAT(problem_of({}), test::Names("blurpool", "a"));
}

TEST_F(WeightsCheckTest, AnotherNetworkIsRefusedInTrainingToo) {
  const WeightsSpec here = spec_of_network({});
  WeightsSpec there = here;
  there.arch = "resnet50";
  there.params["squeeze_excite.latent_channels"] = "64.0";
  for (const WeightsUse use : {WeightsUse::train, WeightsUse::evaluate}) {
    EXPECT_THAT(compared(there, here, use),
                test::Names("refused", "model.arch", "resnet50", "resnet18", folder_ / "w.pt"));
  }
  there.arch = here.arch;
  WeightsSpec changed = here;
  changed.params = {{"squeeze_excite.latent_channels", "0.5"},
                    {"squeeze_excite.min_channels", "64"}};
  EXPECT_THAT(compared(there, changed, WeightsUse::train),
              test::Names("refused", "model.params.squeeze_excite.latent_channels", "64.0", "0.5",
                          "model.params.squeeze_excite.min_channels"));
  EXPECT_THAT(
      compared(there, here, WeightsUse::evaluate, /*strict=*/false),
      test::Names("warning", "model.params.squeeze_excite.latent_channels", folder_ / "w.pt"));
}

TEST_F(WeightsCheckTest, OptionsThatActOnlyInTrainingMayDiffer) {
  const WeightsSpec here = spec_of_network({});
  WeightsSpec there = here;
  there.params = {{"zero_init_residual", "true"},
                  {"log_bias", "true"},
                  {"stochastic_depth.drop_rate", "0.1"},
                  {"stochastic_depth.mode", "\"sample\""}};
  for (const WeightsUse use : {WeightsUse::train, WeightsUse::evaluate}) {
    EXPECT_EQ(compared(there, here, use), "");
    EXPECT_EQ(compared(here, there, use), "");
  }
  // Models of plug-ins may have options of the same names.
  there.arch = "own";
  WeightsSpec own = there;
  own.params.erase("log_bias");
  EXPECT_THAT(compared(there, own, WeightsUse::evaluate),
              test::Names("refused", "model.params.log_bias"));
}

TEST_F(WeightsCheckTest, OtherDataIsRefusedInEvaluationAndAWarningInTraining) {
  WeightsSpec here = spec_of_network({});
  here.class_names = {"cat", "dog"};
  const std::vector<std::pair<std::function<void(WeightsSpec&)>, std::vector<std::string>>> cases =
      {{[](WeightsSpec& spec) {
          spec.class_names = {"cat", "fox"};
        },
        {"1", "'fox'", "'dog'"}},
       {[](WeightsSpec& spec) { spec.class_names.pop_back(); }, {"1", "'dog'"}},
       {[](WeightsSpec& spec) { spec.mean[0] = 100; }, {"100", "123.675"}},
       {[](WeightsSpec& spec) { spec.mean.clear(), spec.std.clear(); }, {"123.675"}}};
  for (const auto& [change, facts] : cases) {
    WeightsSpec there = here;
    change(there);
    EXPECT_THAT(compared(there, here, WeightsUse::evaluate),
                testing::AllOf(test::Names("refused"), NamesMatcher(facts)));
    EXPECT_THAT(compared(there, here, WeightsUse::train),
                testing::AllOf(test::Names("warning"), NamesMatcher(facts)));
  }
}

TEST_F(WeightsCheckTest, AnotherNumberOfClassesIsOnlyForTraining) {
  WeightsSpec here = spec_of_network({});
  WeightsSpec there = here;
  there.num_classes = 1000;
  there.class_names = {"cat"};
  here.class_names = {"dog"};
  EXPECT_EQ(compared(there, here, WeightsUse::train), "");
  EXPECT_THAT(compared(there, here, WeightsUse::evaluate), test::Names("refused", 1000, 10));
}

TEST_F(WeightsCheckTest, WhatIsUnknownOrEqualIsNoDifference) {
  WeightsSpec here = spec_of_network({});
  here.class_names = {"cat"};
  WeightsSpec there = here;
  there.class_names.clear();
  there.resolution_px = 64;
  there.mean[0] = 123.675;
  EXPECT_EQ(compared(there, here, WeightsUse::evaluate), "");
}

TEST_F(WeightsCheckTest, FiltersOfOtherLayersOrValuesAreRefused) {
  const WeightsSpec here = spec_of_network({kBlur});
  const PythonWeights ffcv("resnet18_ffcv_state.txt");
  std::vector<TensorRecord> records = ffcv.records();
  const auto problem_of = [&] {
    save_weights(folder_ / "w.pt", records);
    return problem(
        [&] { check_weights(load_weights(folder_ / "w.pt"), here, WeightsUse::train, true); });
  };
  EXPECT_EQ(problem_of(), "");
  const auto filter = std::ranges::find(records, "layer2.0.conv1.blur_filter", &TensorRecord::name);
  const std::vector<float> box(64 * 9, 1.F / 9);
  filter->bytes = std::as_bytes(std::span(box));
  EXPECT_THAT(problem_of(), test::Names("layer2.0.conv1.blur_filter"));
  records.erase(filter);
  EXPECT_THAT(problem_of(), test::Names("layer2.0.conv1.blur_filter"));
}

}  // namespace
}  // namespace precast::tools
