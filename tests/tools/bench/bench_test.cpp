#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/report/chart/xml.h"

namespace precast::tools {
namespace {

using nlohmann::json;
using test::Names;
using testing::HasSubstr;

/// Runs the programs as a user does, with steps so small that they take milliseconds.
class BenchTest : public ::testing::Test {
 protected:
  static ChildResult bench(const std::vector<std::string>& args) {
    std::vector<std::string> all = {test::bin_dir() + "/precast", "bench"};
    all.insert(all.end(), args.begin(), args.end());
    return run_child(all, std::chrono::minutes(3));
  }
  /// Runs `precast bench step` with small values for the options that are not in `args`.
  static ChildResult step(const std::vector<std::string>& args) {
    std::vector<std::string> all = {"step", "--model.num_classes=10"};
    const std::pair<const char*, const char*> defaults[] = {
        {"--device", "cpu"}, {"--image-size", "32"}, {"--warmup", "1"},    {"--steps", "1"},
        {"--runs", "3"},     {"--threads", "1"},     {"--batch-size", "2"}};
    for (const auto& [option, value] : defaults) {
      if (std::ranges::find(args, option) == args.end()) all.insert(all.end(), {option, value});
    }
    all.insert(all.end(), args.begin(), args.end());
    return bench(all);
  }
  std::string dataset() const {
    test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1"));
    return folder_ / "d.beton";
  }

  test::TemporaryFolder folder_;
};

TEST_F(BenchTest, StepReportsSpeedAndEverySetting) {
  const ChildResult run = step({"--json", "--blurpool", "--layout", "nchw"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json figures = json::parse(run.output);
  EXPECT_GT(figures.at("images_per_second").get<double>(), 0);
  EXPECT_LE(figures.at("min"), figures.at("images_per_second"));
  EXPECT_LE(figures.at("images_per_second"), figures.at("max"));
  EXPECT_EQ(figures.at("windows").size(), 3U);
  EXPECT_FALSE(figures.at("device_name").get<std::string>().empty());
  EXPECT_THAT(figures.at("torch").get<std::string>(), HasSubstr("2."));
  const json& settings = figures.at("settings");
  EXPECT_EQ(settings.at("model"), "resnet18");
  EXPECT_EQ(settings.at("blurpool"), true);
  EXPECT_EQ(settings.at("layout"), "nchw");
  EXPECT_EQ(settings.at("image_size"), 32);
  EXPECT_EQ(settings.at("batch_size"), 2);
  EXPECT_EQ(settings.at("threads"), 1);
  EXPECT_EQ(settings.at("precision"), "fp32");
  EXPECT_EQ(settings.at("cuda_graphs"), "auto");
}

TEST_F(BenchTest, TheBatchSizeOfStepReplacesTheGlobalOneOfTheRecipe) {
  std::ofstream(folder_ / "r.yaml") << "training: {global_batch_size: 64}\n";
  const ChildResult run = step({folder_ / "r.yaml", "--json", "--runs", "1", "--batch-size", "3"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(json::parse(run.output).at("settings").at("batch_size"), 3);
  EXPECT_THAT(run.errors, testing::Not(Names("training.batch_size")));
}

TEST_F(BenchTest, StepTakesTheGraphModeAndReportsReplays) {
  const ChildResult run = step({"--json", "--cuda-graphs", "off"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json figures = json::parse(run.output);
  EXPECT_EQ(figures.at("settings").at("cuda_graphs"), "off");
  EXPECT_EQ(figures.at("replayed_passes"), 0);
  EXPECT_EQ(figures.at("windows").at(0).at("replayed_passes"), 0);
}

TEST_F(BenchTest, StepRefusesGraphsOnACpu) {
  for (const char* mode : {"on", "step"}) {
    const ChildResult run = step({"--cuda-graphs", mode});
    EXPECT_EQ(run.exit_code, 2) << mode;
    EXPECT_THAT(run.errors, HasSubstr("training.cuda_graphs"));
  }
}

TEST_F(BenchTest, StepTrainsOnSyntheticDataFromHostOrDeviceAndOnAFile) {
  const std::string file = dataset();
  for (const std::string& data :
       {std::string("device"), std::string("cpu"), std::string("queue"), file}) {
    // With more steps than the file has batches, the loader begins again.
    const ChildResult run =
        step({"--data", data, "--json", "--steps", "5", "--model.num_classes=24"});
    ASSERT_EQ(run.exit_code, 0) << data << run.errors;
    const json figures = json::parse(run.output);
    EXPECT_EQ(figures.at("settings").at("data"), data);
    EXPECT_GT(figures.at("loss").get<double>(), 0) << data;
  }
}

TEST_F(BenchTest, StepWritesATraceThatLoads) {
  const std::filesystem::path trace = folder_ / "trace.json";
  ASSERT_EQ(step({"--runs", "1", "--profile", trace.string(), "--json"}).exit_code, 0);
  const json events = json::parse(std::ifstream(trace)).at("traceEvents");
  const auto named = [&](const char* name) {
    return std::ranges::any_of(events, [&](const json& e) { return e.value("name", "") == name; });
  };
  EXPECT_TRUE(named("aten::convolution"));
  EXPECT_TRUE(named("aten::convolution_backward"));
}

TEST_F(BenchTest, EachMeasurementIsOfTheFirstStepsOfARun) {
  const std::string trace = folder_ / "trace.json";
  // In this run of one epoch, the images of later steps have full size.
  const ChildResult run = step(
      {"--steps", "4", "--training.epochs=1", "--model.arch=layers",
       "--model.params={layers: [conv: {out: 4}, relu, global_avg_pool, flatten, linear]}",
       "--methods=[batch_resize: {initial_scale: 0.5, delay_fraction: 0.1}]", "--profile", trace});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names("methods", "batch_resize"));
  const json recorded = json::parse(std::ifstream(trace));
  int steps = 0;
  for (const json& event : recorded.at("traceEvents")) {
    if (event.value("name", "") != "aten::conv2d") continue;
    EXPECT_EQ(event.at("args").at("Input Dims").at(0), json::parse("[2, 3, 16, 16]"));
    ++steps;
  }
  EXPECT_EQ(steps, 3);
}

TEST_F(BenchTest, RanksAreTabledWithTheirEfficiency) {
  const ChildResult run = step({"--ranks", "1,2", "--data", "device,cpu", "--variable-update",
                                "parameter_server", "--runs", "1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json rows = json::parse(run.output);
  ASSERT_EQ(rows.size(), 2U);
  ASSERT_EQ(rows[1].at("columns").size(), 2U);
  EXPECT_DOUBLE_EQ(rows[0].at("columns")[0].at("efficiency").get<double>(), 1.0);
  const json& cell = rows[1].at("columns")[1];
  EXPECT_EQ(cell.at("settings").at("ranks"), 2);
  EXPECT_EQ(cell.at("settings").at("data"), "cpu");
  EXPECT_EQ(cell.at("settings").at("variable_update"), "parameter_server");
  EXPECT_NEAR(cell.at("efficiency").get<double>(),
              cell.at("images_per_second").get<double>() / 2 /
                  rows[0].at("columns")[1].at("images_per_second").get<double>(),
              1e-9);
}

TEST_F(BenchTest, TheTableOfRanksHasAColumnForEachPairOfListedValues) {
  const std::string file = dataset();
  const ChildResult run = step({"--ranks", "1", "--data", file + ",cpu", "--variable-update",
                                "replicated,allreduce_after_backward", "--runs", "1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json columns = json::parse(run.output).at(0).at("columns");
  ASSERT_EQ(columns.size(), 4U);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const json& settings = columns[i].at("settings");
    EXPECT_EQ(settings.at("data"), i < 2 ? file : "cpu");
    EXPECT_EQ(settings.at("variable_update"),
              i % 2 == 0 ? "replicated" : "allreduce_after_backward");
  }
}

TEST_F(BenchTest, TheTableOfRanksIsWrittenToTheOutputFile) {
  const std::string file = folder_ / "ranks.json";
  for (const std::string& option : {"--output=" + file, "-o" + file}) {
    const ChildResult run = step({"--ranks", "1", "--runs", "1", option});
    ASSERT_EQ(run.exit_code, 0) << option << run.errors;
    EXPECT_EQ(run.output, "");
    ASSERT_TRUE(std::filesystem::exists(file)) << option;
    const json rows = json::parse(std::ifstream(file));
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].at("ranks"), 1);
    std::filesystem::remove(file);
  }
}

TEST_F(BenchTest, AllreduceTimesEachSize) {
  const ChildResult run = bench({"allreduce", "--device", "cpu", "--ranks", "2", "--sizes",
                                 "4KB,1MB", "--runs", "3", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json figures = json::parse(run.output);
  EXPECT_EQ(figures.at("ranks"), 2);
  ASSERT_EQ(figures.at("sums").size(), 2U);
  const json& large = figures.at("sums")[1];
  EXPECT_EQ(large.at("bytes"), 1 << 20);
  EXPECT_GT(large.at("seconds").get<double>(), 0);
  // With two ranks, the number of bytes sent over a link equals the size of the tensor.
  EXPECT_DOUBLE_EQ(large.at("bus_bytes_per_second").get<double>(),
                   large.at("algorithm_bytes_per_second").get<double>());
}

TEST_F(BenchTest, StagesAreMeasuredAndDrawn) {
  const std::string svg = folder_ / "stages.svg";
  const ChildResult run =
      bench({"stages", "--data.train_dataset=" + dataset(), "--training.batch_size=4",
             "--training.device=cpu", "--resolution.min_res=32", "--resolution.max_res=32",
             "--steps", "2", "--runs", "1", "--cold", "--svg", svg, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json stages = json::parse(run.output).at("stages");
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[0].at("stage"), "read");
  EXPECT_EQ(stages[0].at("images"), 24);
  EXPECT_GT(stages[0].at("bytes_per_second").get<double>(), 0);
  EXPECT_EQ(stages[1].at("images"), 24);
  EXPECT_EQ(stages[2].at("images"), 8);
  EXPECT_DOUBLE_EQ(stages[3].at("of_training_on_one_batch").get<double>(), 1.0);
  const auto bytes = read_file(svg);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_GE(test::parse_xml(text).get_child("svg").count("g"), stages.size());
  for (const json& stage : stages)
    EXPECT_THAT(text, HasSubstr(stage.at("stage").get<std::string>()));
}

TEST_F(BenchTest, ABatchLargerThanTheDatasetEndsStagesWithCodeTwo) {
  const ChildResult run =
      bench({"stages", "--data.train_dataset=" + dataset(), "--training.batch_size=25",
             "--training.device=cpu", "--resolution.min_res=32", "--resolution.max_res=32",
             "--steps", "1", "--runs", "1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names("training.batch_size", 24, folder_ / "d.beton", 25));
}

TEST_F(BenchTest, ABatchLargerThanTheDatasetEndsAStepWithCodeTwo) {
  const ChildResult run =
      step({"--data", dataset(), "--batch-size", "25", "--model.num_classes=24"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names("training.batch_size", 24, folder_ / "d.beton", 25));
}

TEST_F(BenchTest, RanksOnAMissingGpuAreNotStarted) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"allreduce"}, {"step", "--ranks", "1,2"}, {"step", "--dist.nproc=2"}}) {
    std::vector<std::string> args = {
        "/usr/bin/env", "CUDA_VISIBLE_DEVICES=", test::bin_dir() + "/precast", "bench"};
    args.insert(args.end(), command.begin(), command.end());
    args.insert(args.end(), {"--device", "cuda"});
    const ChildResult run = run_child(args, std::chrono::minutes(1));
    EXPECT_EQ(run.exit_code, 6) << run.errors;
    EXPECT_THAT(run.errors, Names("training.device"));
    EXPECT_EQ(std::ranges::count(run.errors, '\n'), 1) << run.errors;
  }
}

TEST_F(BenchTest, WrongArgumentsEndWithCodeTwo) {
  const auto fails = [](const std::vector<std::string>& args, const test::NamesMatcher& facts) {
    const ChildResult run = bench(args);
    EXPECT_EQ(run.exit_code, 2) << run.errors;
    EXPECT_THAT(run.errors, facts);
  };
  fails({"speed"}, Names("bench speed", "bench step"));
  fails({"step", "--steps", "0"}, Names("--steps", 1, 0));
  fails({"step", "--data", "disk", "--device", "cpu", "--image-size", "32"},
        Names("--data", "device", "disk"));
  fails({"step", "--layout", "chw"}, Names("--layout", "nhwc", "nchw", "chw"));
  fails({"step", "--model", "resnet19"}, Names("model.arch", "resnet19"));
  fails({"step", "--ranks", "1,x"}, Names("--ranks", "x"));
  fails({"step", "--ranks", "1,,2"}, Names("--ranks", "1,,2"));
  fails({"step", "--ranks", "1,2", "--profile", "t.json"},
        Names("--profile", "--ranks", "'t.json'"));
  fails({"allreduce", "--sizes", "1XB"}, Names("--sizes", "1XB"));
  fails({"allreduce", "--ranks", "1"}, Names("--ranks", 1));
  fails({"stages", "--training.device=cpu"}, Names("data.train_dataset"));
}

TEST_F(BenchTest, LoaderLoadsWhatARecipeTrainsOn) {
  const std::string recipe = folder_ / "r.yaml";
  std::ofstream(recipe) << "data: {train_dataset: " << dataset() << ", val_dataset: " << dataset()
                        << ", order: quasi_random, num_workers: 1, inputs: [a, b]}\n"
                        << "resolution: {min_res: 32, max_res: 48}\n"
                        << "pipeline:\n  train:\n"
                        << "    a: {field: image, transforms: [random_resized_crop]}\n"
                        << "    b: {field: image, transforms: [center_crop]}\n"
                        << "    label: {field: label}\n"
                        << "training: {batch_size: 5, device: cpu}\n"
                        << "validation: {batch_size: 7, resolution: 64}\n";
  const auto load = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"loader", recipe, "--runs", "2", "--passes", "1", "--json"});
    const ChildResult run = bench(more);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return json::parse(run.output, nullptr, /*allow_exceptions=*/false);
  };
  const json train = load({});
  EXPECT_EQ(train.at("samples"), 24);
  const json& settings = train.at("points").at(0).at("settings");
  EXPECT_EQ(settings.at("batch_size"), 5);
  EXPECT_EQ(settings.at("workers"), 1);
  EXPECT_EQ(settings.at("order"), "quasi_random");
  EXPECT_EQ(settings.at("image_size"), 48);
  // Training leaves out the last, smaller batch; evaluation does not.
  EXPECT_EQ(train.at("points").at(0).at("runs").at(1).at("images"), 20);
  const json val = load({"--val", "--validation.batch_size=6", "--processes", "2"});
  EXPECT_EQ(val.at("points").at(0).at("settings").at("image_size"), 64);
  EXPECT_EQ(val.at("points").at(0).at("runs").at(0).at("images"), 2 * 24);
  const json subset = load({"--data.subset=10"});
  EXPECT_EQ(subset.at("points").at(0).at("runs").at(0).at("images"), 10);
  const json rank = load({"--training.global_batch_size=12", "--dist.nproc=3"});
  EXPECT_EQ(rank.at("points").at(0).at("settings").at("batch_size"), 4);
  EXPECT_EQ(rank.at("points").at(0).at("runs").at(0).at("images"), 24);
  const ChildResult text = bench({"loader", recipe, "--runs", "1", "--passes", "1"});
  EXPECT_THAT(text.output, Names("img/CPU-s", "quasi_random"));
  const ChildResult wrong = bench({"loader", recipe, "--data.train_dataset=none.beton"});
  EXPECT_EQ(wrong.exit_code, 5);
  EXPECT_THAT(wrong.errors, Names("none.beton"));
  const ChildResult unknown = bench({"loader", recipe, "--workers", "2"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors, Names("--workers", "precast bench loader --help"));
}

TEST_F(BenchTest, ABatchLargerThanTheDatasetEndsTheLoaderOfARecipeWithCodeTwo) {
  const std::string recipe = folder_ / "r.yaml";
  std::ofstream(recipe) << "data: {train_dataset: " << dataset() << ", val_dataset: " << dataset()
                        << "}\n"
                        << "training: {batch_size: 25, device: cpu}\n"
                        << "validation: {batch_size: 25}\n";
  const ChildResult run = bench({"loader", recipe, "--runs", "1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names("training.batch_size", 25, 24, "d.beton"));
  // As in training, all ranks together need enough samples.
  const ChildResult ranks =
      bench({"loader", recipe, "--training.batch_size=9", "--dist.nproc=3", "--runs", "1"});
  EXPECT_EQ(ranks.exit_code, 2);
  EXPECT_THAT(ranks.errors, Names("training.batch_size", 27, 24));
  // The last batch of an evaluation may have any size.
  const ChildResult val =
      bench({"loader", recipe, "--val", "--runs", "1", "--passes", "1", "--image-size", "32"});
  EXPECT_EQ(val.exit_code, 0) << val.errors;
}

}  // namespace
}  // namespace precast::tools
