// Tests `precast bench step --model-cost`, and the tracing of a step's ops on which it is based.
#include <ATen/ops/addmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/process/child_process.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"
#include "tools/bench/torch/step_trace.h"

namespace precast::tools {
namespace {

using nlohmann::json;
using test::Names;

/// The names of the ops, each with the number of elements of its first result.
std::vector<std::pair<std::string, double>> results_of(const StepTrace& trace) {
  std::vector<std::pair<std::string, double>> results;
  for (const TracedOp& op : trace.ops)
    results.emplace_back(op.name, op.outputs.empty() ? 0 : op.outputs[0].elements());
  return results;
}

TEST(StepTraceTest, RecordsForwardAndBackwardForTheRequestedBatchSize) {
  const at::Tensor weight = at::ones({8, 5}).requires_grad_(true);
  const auto step = [&](std::int64_t samples) {
    const at::Tensor bias = at::zeros({5});
    at::relu(at::addmm(bias, at::ones({samples, 8}), weight)).sum().backward();
  };
  const StepTrace trace = trace_step(step, 1, 100);
  std::map<std::string, const TracedOp*> ops;
  for (const TracedOp& op : trace.ops) ops[op.name] = &op;
  ASSERT_TRUE(ops.contains("addmm") && ops.contains("relu") && ops.contains("mm"));
  EXPECT_EQ(ops["addmm"]->inputs.at(1).sizes, (std::vector<std::int64_t>{100, 8}));
  EXPECT_TRUE(ops["addmm"]->inputs[1].per_sample);
  EXPECT_FALSE(ops["addmm"]->inputs.at(2).per_sample);
  EXPECT_EQ(ops["addmm"]->phase, StepPhase::forward);
  EXPECT_EQ(ops["relu"]->outputs.at(0).elements(), 500);
  EXPECT_EQ(ops["mm"]->phase, StepPhase::backward);
  EXPECT_EQ(ops["mm"]->outputs.at(0).sizes, (std::vector<std::int64_t>{8, 5}));
  EXPECT_TRUE(trace.uncounted.empty());
}

TEST(StepTraceTest, UnknownOpsAreNamed) {
  const auto step = [](std::int64_t samples) {
    const at::Tensor x = at::zeros({samples, 3});
    static_cast<void>(at::mul(at::erfinv(x), at::erfinv(x)));
  };
  const StepTrace trace = trace_step(step, 1, 8);
  EXPECT_EQ(trace.uncounted, (std::map<std::string, int>{{"aten::erfinv", 2}}));
  EXPECT_EQ(results_of(trace).back(), std::make_pair(std::string("mul"), 24.));
}

TEST(StepTraceTest, StepsThatDifferAreAnError) {
  int calls = 0;
  const auto step = [&](std::int64_t samples) {
    at::Tensor x = at::ones({samples});
    for (int i = 0; i < ++calls; i += 2) x = at::relu(x);
  };
  EXPECT_THROW(static_cast<void>(trace_step(step, 1, 8)), ConfigError);
}

TEST(StepTraceTest, TheFirstOpThatDiffersIsNamed) {
  int calls = 0;
  const auto step = [&](std::int64_t samples) {
    const at::Tensor x = at::relu(at::ones({samples, 3}));
    static_cast<void>(++calls % 2 == 0 ? at::sigmoid(x) : at::tanh(x));
  };
  EXPECT_THAT([&] { static_cast<void>(trace_step(step, 1, 8)); },
              testing::ThrowsMessage<ConfigError>(
                  Names("--model-cost", "sigmoid of [[2, 3]]", "tanh of [[3, 3]]")));
}

TEST(StepTraceTest, TransposedConvolutionsMultiplyEachInputPixelWithEveryTap) {
  const at::Tensor weight = at::ones({6, 4, 3, 3}).requires_grad_(true);
  const auto step = [&](std::int64_t samples) {
    const at::Tensor x = at::ones({samples, 6, 5, 5}).requires_grad_(true);
    // relu, because sum() alone would pass on an expanded gradient of one element.
    at::relu(at::conv_transpose2d(x, weight, {}, /*stride=*/2)).sum().backward();
  };
  double forward = 0, backward = 0;
  for (const TracedOp& op : trace_step(step, 1, 10).ops) {
    if (!op.name.starts_with("convolution")) continue;
    EXPECT_TRUE(op.transposed) << op.name;
    for (const OpCost& cost : costs_of(op, CostPrecision::fp32))
      (cost.phase == StepPhase::forward ? forward : backward) += cost.flops;
  }
  EXPECT_DOUBLE_EQ(forward, 2. * 10 * 25 * 6 * 4 * 9);
  EXPECT_DOUBLE_EQ(backward, 2 * forward);
}

TEST(StepTraceTest, OnlyTrainedDepthwiseWeightsAreCast) {
  const at::Tensor trained = at::ones({6, 1, 3, 3}).requires_grad_(true);
  const at::Tensor filter = at::ones({6, 1, 3, 3});
  const auto step = [&](std::int64_t samples) {
    const at::Tensor x = at::ones({samples, 6, 5, 5}).requires_grad_(true);
    const auto depthwise = [](const at::Tensor& images, const at::Tensor& weight) {
      return at::conv2d(images, weight, {}, /*stride=*/1, /*padding=*/1, /*dilation=*/1,
                        /*groups=*/6);
    };
    at::relu(depthwise(depthwise(x, trained), filter)).sum().backward();
  };
  std::map<StepPhase, int> casts;
  for (const TracedOp& op : trace_step(step, 1, 10).ops)
    for (const OpCost& cost : costs_of(op, CostPrecision::fp16))
      if (cost.kind == OpKind::cast) ++casts[cost.phase];
  EXPECT_EQ(casts, (std::map<StepPhase, int>{{StepPhase::forward, 1}, {StepPhase::backward, 1}}));
}

/// Forward multiply-accumulates per image, in units of 10^9.
double forward_gmacs(const json& report) {
  double flops = 0;
  for (const json& op : report.at("image_sizes").at(0).at("ops")) {
    if (op.at("phase") == "forward") flops += op.at("flops").get<double>();
  }
  return flops / 2e9 / report.at("settings").at("batch_size").get<double>();
}

class ModelCostTest : public ::testing::Test {
 protected:
  static ChildResult run(std::vector<std::string> args) {
    args.insert(args.begin(), {test::bin_dir() + "/precast"});
    return run_child(args, std::chrono::minutes(5));
  }
  ChildResult cost_run(std::vector<std::string> args) const {
    args.insert(args.begin(), {"bench", "step", "--model-cost", "--output", file()});
    return run(std::move(args));
  }
  /// The cost as JSON, read from a file because run() limits the length of the output.
  json cost(const std::vector<std::string>& args) const {
    const ChildResult ended = cost_run(args);
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    return json::parse(std::ifstream(file()));
  }
  std::string file() const { return folder_ / "cost.json"; }
  /// Projects a table with one row `a`, a small network that trains 2 epochs with batches of 100 of
  /// 6000 images.
  ChildResult project(std::vector<std::string> args) const {
    std::ofstream(folder_ / "small.yaml")
        << "model:\n"
           "  arch: layers\n"
           "  num_classes: 10\n"
           "  params: {layers: [conv: {out: 8}, relu, global_avg_pool, flatten, linear]}\n"
           "resolution: {min_res: 32, max_res: 32}\n"
           "training: {epochs: 2, batch_size: 100}\n";
    std::ofstream(folder_ / "small_table.yaml")
        << "title: A small network\n"
           "train_images: 6000\n"
           "sources: []\n"
           "rows: [{id: a, model: Net, recipe: small.yaml}]\n";
    args.insert(args.begin(), {"reproduce", folder_ / "small_table.yaml", "--folder",
                               folder_ / "out", "--project", "h100", "--json"});
    return run(std::move(args));
  }
  /// Expects that the projected minutes of row `a` are the time of `steps` steps in each of its 2
  /// epochs. @return the row
  json projected_row(const std::vector<std::string>& args, int steps) const {
    const ChildResult ended = project(args);
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    const json details = json::parse(std::ifstream(folder_ / "out/projection/a.json"));
    const double ms =
        details.at("image_sizes")[0].at("reference").at("cards")[0].at("ms").get<double>();
    json row = json::parse(ended.output).at("rows").at(0);
    EXPECT_NEAR(row.at("projected_minutes").get<double>(), 2 * steps * ms / 60e3, 1e-12);
    return row;
  }

  test::TemporaryFolder folder_;
};

/// @param gmacs the GFLOPS in torchvision's table of weights, which counts a multiply-accumulate as
/// one operation.
void expect_multiply_accumulates(const json& report, double gmacs) {
  EXPECT_NEAR(forward_gmacs(report), gmacs, 0.01);
  const json& size = report.at("image_sizes").at(0);
  EXPECT_TRUE(size.at("uncounted").empty()) << size.at("uncounted").dump();
  // The backward pass takes twice as many operations as the forward pass, except that the first
  // convolution does not compute the gradient of the images.
  const double all = size.at("reference").at("flops").get<double>() / 2e9 /
                     report.at("settings").at("batch_size").get<double>();
  EXPECT_NEAR(all, 3 * gmacs - 0.118, 0.02);
}

/// Expects that the report compares a published figure with the cost on the same card.
void expect_published(const json& size, const char* card, double images_per_second,
                      double max_deviation) {
  for (const json& entry : size.at("published")) {
    if (entry.at("card") != card) continue;
    EXPECT_EQ(entry.at("images_per_second"), images_per_second);
    EXPECT_LT(std::abs(entry.at("deviation").get<double>()), max_deviation) << entry.dump();
    for (const json& own : size.at("reference").at("cards")) {
      if (own.at("card") == card) {
        EXPECT_EQ(own.at("images_per_second"), entry.at("projected"));
      }
    }
    return;
  }
  ADD_FAILURE() << "no comparison for " << card << " in " << size.at("published").dump();
}

TEST_F(ModelCostTest, ResNet18MultipliesAsInTorchvision) {
  expect_multiply_accumulates(
      cost({"--model", "resnet18", "--image-size", "224", "--batch-size", "32"}), 1.81);
}

TEST_F(ModelCostTest, ResNet50MultipliesAsInTorchvisionAndIsAsFastAsDeepLearningExamples) {
  const json report = cost({"--model", "resnet50", "--image-size", "224", "--batch-size", "256"});
  expect_multiply_accumulates(report, 4.09);
  const json& size = report.at("image_sizes").at(0);
  ASSERT_EQ(size.at("published").size(), 3U);
  expect_published(size, "v100", 1200, 0.002);
  expect_published(size, "a100_80gb", 2470, 0.15);
  expect_published(size, "h100", 4701, 0.15);
}

TEST_F(ModelCostTest, FfcvsResNet50IsWithin15Percent) {
  const json report = cost({test::source_dir() + "/configs/imagenet/rn50_16_epochs.yaml"});
  const json& sizes = report.at("image_sizes");
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0].at("image_size"), 160);
  expect_published(sizes[0], "a100_40gb", 3517, 0.15);
  EXPECT_EQ(sizes[1].at("image_size"), 192);
  expect_published(sizes[1], "a100_40gb", 2601, 0.15);
}

TEST_F(ModelCostTest, FusedKernelsSaveBytesAndLargerBatchesTakeLonger) {
  double last = 0;
  for (const char* batch : {"64", "128", "256"}) {
    const json report = cost({"--model", "resnet18", "--image-size", "64", "--batch-size", batch,
                              "--card", "h200", "--blurpool"});
    const json& size = report.at("image_sizes").at(0);
    const auto of = [&](const char* kernels, const char* key) {
      return size.at(kernels).at(key).get<double>();
    };
    EXPECT_LT(of("fused", "bytes"), 0.9 * of("reference", "bytes"));
    EXPECT_DOUBLE_EQ(of("fused", "flops"), of("reference", "flops"));
    const double ms = size.at("reference").at("cards").at(0).at("ms").get<double>();
    EXPECT_GT(ms, last);
    last = ms;
  }
}

TEST_F(ModelCostTest, AModelOfKnownLayersAndEverySizeOfThePlan) {
  std::ofstream(folder_ / "r.yaml") << R"(
model:
  arch: layers
  num_classes: 10
  params: {layers: [conv: {out: 8}, relu, global_avg_pool, flatten, linear]}
resolution: {min_res: 32, max_res: 64, start_ramp: 1, end_ramp: 2}
training: {epochs: 4, batch_size: 16}
)";
  const json report = cost({folder_ / "r.yaml", "--precision", "bf16", "--card", "a100_40gb,h100"});
  EXPECT_EQ(report.at("settings").at("precision"), "bf16");
  const json& sizes = report.at("image_sizes");
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0].at("image_size"), 32);
  EXPECT_EQ(sizes[0].at("epochs").get<int>() + sizes[1].at("epochs").get<int>(), 4);
  EXPECT_DOUBLE_EQ(forward_gmacs(report) * 1e9, 32 * 32 * 8 * 3 * 9 + 8 * 10);
}

TEST_F(ModelCostTest, WrongArgumentsEndWithCodeTwo) {
  const auto fails = [&](const std::vector<std::string>& args, const test::NamesMatcher& facts) {
    const ChildResult ended = cost_run(args);
    EXPECT_EQ(ended.exit_code, 2) << ended.errors;
    EXPECT_THAT(ended.errors, facts);
  };
  fails({"--card", "h300", "--image-size", "32"}, Names("--card", "h300", "h200"));
  fails({"--card", "v100", "--precision", "bf16", "--image-size", "32"}, Names("--card", "v100"));
  for (const auto& [option, value] : std::map<std::string, std::string>{{"--ranks", "1,2"},
                                                                        {"--data", "cpu"},
                                                                        {"--steps", "7"},
                                                                        {"--warmup", "3"},
                                                                        {"--runs", "2"},
                                                                        {"--threads", "4"},
                                                                        {"--device", "cpu"},
                                                                        {"--cuda-graphs", "on"},
                                                                        {"--profile", "t.json"}})
    fails({option, value}, Names(option, "--model-cost", value));
  for (const char* layout : {"--layout=nchw", "--training.channels_last=false"})
    fails({layout, "--image-size", "32"}, Names("training.channels_last", "--model-cost"));
}

TEST_F(ModelCostTest, AMethodThatChangesTheWorkDuringTheRunIsAnError) {
  const ChildResult cost =
      cost_run({"--card", "h100", "--image-size", "32", "--methods=[batch_resize, ema]"});
  EXPECT_EQ(cost.exit_code, 2) << cost.errors;
  EXPECT_THAT(cost.errors, Names("methods", "--model-cost", "batch_resize"));
  EXPECT_FALSE(std::filesystem::exists(file()));
  const ChildResult projection = project({"--methods=[sam: {interval: 2}]"});
  EXPECT_EQ(projection.exit_code, 2) << projection.errors;
  EXPECT_THAT(projection.errors, Names("row a", "methods", "sam"));
}

TEST_F(ModelCostTest, ACardWithoutTheModelIsAnError) {
  const ChildResult ended = run({"bench", "step", "--card", "h200"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.errors, Names("--card", "--model-cost", "h200"));
}

TEST_F(ModelCostTest, ATableIsProjected) {
  // At much smaller sizes, launches would take most of the time, and fused norms need more
  // launches.
  std::ofstream(folder_ / "r.yaml") << "model: {arch: resnet18, num_classes: 10}\n"
                                       "resolution: {min_res: 128, max_res: 128}\n"
                                       "training: {epochs: 2, batch_size: 100}\n";
  std::ofstream(folder_ / "table.yaml") << R"(
title: One row
train_images: 6050
sources: [{id: paper, title: A paper, url: "https://example.org"}]
rows:
  - {id: a, model: Net, recipe: r.yaml, settings: {training.epochs: 3},
     published: [{source: paper, top_1: 0.3, minutes: 10, hardware: 1 x A100}]}
)";
  const std::string out = folder_ / "out";
  const ChildResult ended = run(
      {"reproduce", folder_ / "table.yaml", "--folder", out, "--project", "a100_40gb", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  const json projection = json::parse(ended.output);
  EXPECT_EQ(projection, json::parse(std::ifstream(out + "/projection.json")));
  EXPECT_EQ(projection.at("projection"), true);
  EXPECT_EQ(projection.at("checked"), true);
  const json& row = projection.at("rows").at(0);
  EXPECT_EQ(row.at("published_minutes"), 10);
  const json details = json::parse(std::ifstream(out + "/projection/a.json"));
  const double ms =
      details.at("image_sizes")[0].at("reference").at("cards")[0].at("ms").get<double>();
  EXPECT_NEAR(row.at("projected_minutes").get<double>(), 3 * 60 * ms / 60e3, 1e-12);
  EXPECT_LT(row.at("projected_fused_minutes"), row.at("projected_minutes"));
  const ChildResult unknown =
      run({"reproduce", folder_ / "table.yaml", "--folder", out, "--project", "all"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors, Names("--project", "all"));
}

TEST_F(ModelCostTest, AllCardsAreThoseThatComputeInThePrecision) {
  const std::vector<std::string> bf16 = {
      "--model",      "resnet18", "--image-size",         "32",
      "--batch-size", "2",        "--training.precision", "bf16"};
  std::vector<std::string> names;
  const json report = cost(bf16);
  for (const json& card : report.at("image_sizes").at(0).at("reference").at("cards"))
    names.push_back(card.at("card"));
  EXPECT_THAT(names, testing::Contains("h100"));
  EXPECT_THAT(names, testing::Not(testing::Contains("v100")));
  std::vector<std::string> old_card = bf16;
  old_card.insert(old_card.end(), {"--card", "h100,v100"});
  const ChildResult ended = cost_run(old_card);
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.errors, Names("--card", "bf16", "v100"));
}

TEST_F(ModelCostTest, AProjectionTrainsOnTheSamplesThatTheKeysSelect) {
  const json whole = projected_row({}, 60);
  EXPECT_EQ(whole.at("gpus"), 1);
  projected_row({"--data.subset=0:1550"}, 15);
  projected_row({"--data.subset=random:1500"}, 15);
  projected_row({"--data.repeats=4"}, 240);
  const ChildResult filtered = project({"--data.filter=label==0"});
  EXPECT_EQ(filtered.exit_code, 2);
  EXPECT_THAT(filtered.errors, Names("--project", "data.filter", "label==0", "row a"));
  EXPECT_EQ(project({"--data.subset=0:6001"}).exit_code, 2);
}

TEST_F(ModelCostTest, AProjectionUsesTheRanksThatTheRunWouldStart) {
  EXPECT_EQ(projected_row({"--dist.nproc=2"}, 30).at("gpus"), 2);
  EXPECT_EQ(projected_row({"--dist.nproc=2", "--training.global_batch_size=120"}, 50).at("gpus"),
            2);
  EXPECT_EQ(projected_row({"--training.distributed=1", "--dist.world_size=4"}, 15).at("gpus"), 4);
}

TEST_F(ModelCostTest, ProjectedMinutesBelowATenthAreNotShownAsZero) {
  ASSERT_EQ(project({}).exit_code, 0);
  const std::string page = test::read_text(folder_ / "out/projection.md");
  EXPECT_THAT(page, testing::HasSubstr("| a | Net | 1 | 0.00"));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("| 0.0 |")));
}

}  // namespace
}  // namespace precast::tools
