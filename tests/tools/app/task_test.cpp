#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "data/image/image.h"
#include "framework/core/archive/npy.h"
#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;
using test::TemporaryFolder;

/// Runs the programs on 24 images with labels 0 to 23, which are also the numbers for regression.
class TaskTest : public ::testing::Test {
 protected:
  TaskTest() { test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1")); }

  /// Runs a command on the dataset, with a recipe of these lines.
  ChildResult run(const std::string& command, const std::string& lines,
                  const std::vector<std::string>& more = {}) {
    const std::string file = folder_ / "d.beton";
    std::ofstream(folder_ / "r.yaml") << lines;
    std::vector<std::string> all = {"/usr/bin/env",
                                    "PRECAST_FAILPOINTS=" + failpoints_,
                                    test::bin_dir() + "/precast",
                                    command,
                                    folder_ / "r.yaml",
                                    "--data.train_dataset=" + file,
                                    "--data.val_dataset=" + file,
                                    "--training.batch_size=8",
                                    "--resolution.min_res=32",
                                    "--resolution.max_res=32",
                                    "--validation.resolution=32",
                                    "--training.epochs=2",
                                    "--logging.folder=" + (folder_ / "runs").string(),
                                    "--logging.run_id=r",
                                    "--training.device=cpu"};
    all.insert(all.end(), more.begin(), more.end());
    return run_child(all, std::chrono::minutes(3));
  }
  nlohmann::json summary() const {
    return nlohmann::json::parse(std::ifstream(folder_ / "runs/r/summary.json"));
  }
  /// Writes a list of samples, one JSON object per line, as a dataset.
  void write(const std::string& list, const std::string& dataset = "d.beton") const {
    std::ofstream(folder_ / "list.jsonl") << list;
    const ChildResult written = run_child(
        {test::bin_dir() + "/precast", "write", folder_ / "list.jsonl", folder_ / dataset},
        std::chrono::minutes(3));
    EXPECT_EQ(written.exit_code, 0) << written.errors;
  }
  /// The shape of the predictions of a run; empty if there are none.
  std::vector<std::int64_t> predicted_shape(const std::string& recipe,
                                            const std::vector<std::string>& more) {
    std::vector<std::string> all = {
        "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string(),
        "--output=" + (folder_ / "o.npy").string()};
    all.insert(all.end(), more.begin(), more.end());
    const ChildResult predicted = run("predict", recipe, all);
    EXPECT_EQ(predicted.exit_code, 0) << predicted.errors;
    if (predicted.exit_code != 0) return {};
    return read_npy(folder_ / "o.npy").shape;
  }

  TemporaryFolder folder_;
  std::string failpoints_;
};

constexpr const char* kRegression =
    "data: {targets: label}\n"
    "training: {loss: huber}\n"
    "loss: {delta: 2}\n"
    "validation: {metrics: [mse, r2]}\n"
    "lr: {lr: 0.001}\n";

TEST_F(TaskTest, TheFirstMetricDecidesAndIsReportedByName) {
  const ChildResult trained = run("train", kRegression);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.errors, Names("| mse ", "(best)", "| r2 "));
  EXPECT_EQ(trained.errors.find("top-1"), std::string::npos);
  EXPECT_EQ(summary().at("best_metric").at("name"), "mse");
  EXPECT_EQ(summary().at("best_metric").at("higher_is_better"), false);
  EXPECT_GT(summary().at("mse").get<double>(), 0);
  EXPECT_FALSE(summary().contains("top_1"));
  // Evaluates the same weights on the same samples.
  const ChildResult evaluated =
      run("eval", kRegression,
          {"--json", "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string()});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  const auto figures = nlohmann::json::parse(evaluated.output);
  EXPECT_EQ(figures.at("mse"), summary().at("mse"));
  EXPECT_EQ(figures.at("r2"), summary().at("r2"));
  EXPECT_FALSE(figures.contains("top_1"));
}

TEST_F(TaskTest, RanksHaveTheFiguresOfAll) {
  ASSERT_EQ(run("train", kRegression, {"--dist.nproc=2", "--training.epochs=1"}).exit_code, 0);
  const double together = summary().at("mse");
  const ChildResult evaluated =
      run("eval", kRegression,
          {"--json", "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string()});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  // In batches of another size, outputs are rounded differently.
  EXPECT_NEAR(nlohmann::json::parse(evaluated.output).at("mse").get<double>() / together, 1, 1e-4);
}

TEST_F(TaskTest, AResumedRunKeepsTheWeightsWithWhichItStarted) {
  const std::string recipe =
      "model: {arch: layers, params: {layers: [global_avg_pool, flatten, linear]}}\n"
      "lr: {lr: 0.001}\n";
  ASSERT_EQ(run("train", recipe).exit_code, 0);
  const std::string weights = (folder_ / "first.safetensors").string();
  std::filesystem::copy_file(folder_ / "runs/r/final_weights.safetensors", weights);
  const std::vector<std::string> longer = {"--training.epochs=3", "--checkpoint.resume=force"};
  std::vector<std::string> with_weights = longer;
  with_weights.push_back("--model.weights=" + weights);
  const ChildResult resumed = run("train", recipe, with_weights);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_THAT(resumed.errors, Names("command line", "model.weights", "no effect"));
  const auto params = nlohmann::json::parse(std::ifstream(folder_ / "runs/r/params.json"));
  EXPECT_EQ(params.at("model.weights"), "");
}

TEST_F(TaskTest, SkippedStepsAreCountedInTheLogTheSummaryAndAWarning) {
  // The gradient of sample 3 overflows in one step of each epoch.
  for (const bool trains : {true, false}) {
    std::ostringstream list;
    for (int i = 0; i < 16; ++i) {
      const char* x = trains && i == 3 ? "3e38" : "1";
      list << R"({"x": [0.5, )" << x << R"(], "y": )" << i << ".5}\n";
    }
    write(list.str(), trains ? "train.beton" : "val.beton");
  }
  const std::string recipe =
      "pipeline: {train: {x: x, y: y}, val: {x: x, y: y}}\n"
      "data: {inputs: x, targets: y}\n"
      "model: {arch: layers, params: {features: 2, layers: [linear]}}\n"
      "training: {loss: mse, on_nonfinite: skip}\n"
      "lr: {lr: 0.001}\n";
  const auto train = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"--data.train_dataset=" + (folder_ / "train.beton").string(),
                                    "--data.val_dataset=" + (folder_ / "val.beton").string(),
                                    "--logging.run_id=" + name};
    all.insert(all.end(), more.begin(), more.end());
    return run("train", recipe, all);
  };
  for (const bool ranks : {false, true}) {
    const std::string name = ranks ? "ranks" : "one";
    const ChildResult trained =
        train(name, ranks ? std::vector<std::string>{"--dist.nproc=2", "--training.batch_size=4"}
                          : std::vector<std::string>{});
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    EXPECT_EQ(test::occurrences(trained.errors, "1 step skipped"), 2) << trained.errors;
    EXPECT_THAT(trained.errors, Names("warning: training.on_nonfinite", "2 steps", "4 steps"));
    const std::filesystem::path folder = folder_ / ("runs/" + name);
    const auto figures = nlohmann::json::parse(std::ifstream(folder / "summary.json"));
    EXPECT_EQ(figures.at("steps"), 4);
    EXPECT_EQ(figures.at("skipped_steps"), 2);
    std::ifstream log(folder / "log");
    for (std::string line; std::getline(log, line);)
      EXPECT_EQ(nlohmann::json::parse(line).at("skipped_steps"), 1) << line;
  }
}

TEST_F(TaskTest, PredictionsOfNumbersAreNumbers) {
  ASSERT_EQ(run("train", kRegression, {"--training.epochs=1"}).exit_code, 0);
  const std::string weights = "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string();
  const ChildResult numbers = run("predict", kRegression, {weights});
  ASSERT_EQ(numbers.exit_code, 0) << numbers.errors;
  EXPECT_EQ(numbers.output.substr(0, numbers.output.find('\n')), "sample,output_0");
  EXPECT_EQ(test::occurrences(numbers.output, "\n"), 25);
  const ChildResult json = run("predict", kRegression, {weights, "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.errors;
  std::istringstream table(numbers.output), rows(json.output);
  std::string line, row;
  std::getline(table, line);
  while (std::getline(table, line) && std::getline(rows, row)) {
    const auto parsed = nlohmann::json::parse(row);
    EXPECT_EQ(parsed.at("name"), line.substr(0, line.find(',')));
    ASSERT_EQ(parsed.at("outputs").size(), 1U);
    EXPECT_EQ(parsed.at("outputs")[0].get<float>(), std::stof(line.substr(line.find(',') + 1)));
  }
  EXPECT_EQ(test::occurrences(json.output, "\n"), 24);
  EXPECT_EQ(run("predict", kRegression, {weights, "--top=3"}).exit_code, 2);
}

TEST_F(TaskTest, ImageFilesWithSeveralLabelsAreTrainedAndPredicted) {
  // 16 images with one or two of three classes.
  const std::string labels[] = {"[1, 0, 0]", "[0, 1, 0]", "[0, 1, 1]", "[1, 0, 1]"};
  std::ofstream list(folder_ / "list.jsonl");
  for (int i = 0; i < 16; ++i) {
    const std::string name = "photos/" + std::to_string(i) + ".jpg";
    test::put_file(folder_ / name, test::jpeg_file(test::gradient(40, 40, i)));
    list << R"({"image": ")" << name << R"(", "labels": )" << labels[i % 4] << "}\n";
  }
  list.close();
  const std::string file = folder_ / "d.beton";
  ASSERT_EQ(run_child({test::bin_dir() + "/precast", "write", folder_ / "list.jsonl", file},
                      std::chrono::minutes(3))
                .exit_code,
            0);
  const std::string recipe =
      "data: {targets: labels}\ntraining: {loss: multi_label_bce}\n"
      "validation: {metrics: [f1]}\nlr: {lr: 0.001}\n";
  const ChildResult trained = run("train", recipe, {"--training.epochs=1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const std::string weights = "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string();
  const ChildResult json = run("predict", recipe, {weights, "--json", "--logits"});
  ASSERT_EQ(json.exit_code, 0) << json.errors;
  std::istringstream rows(json.output);
  std::string row;
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(std::getline(rows, row));
    const auto parsed = nlohmann::json::parse(row);
    const auto logits = parsed.at("logits").get<std::vector<double>>();
    ASSERT_EQ(logits.size(), 3U);
    ASSERT_EQ(parsed.at("predictions").size(), 3U);
    for (const auto& prediction : parsed.at("predictions")) {
      const double logit = logits[prediction.at("label").get<std::size_t>()];
      // The logits are the sums over the image and its mirror image.
      EXPECT_NEAR(prediction.at("probability").get<double>(), 1 / (1 + std::exp(-logit / 2)), 1e-6);
    }
  }
  EXPECT_FALSE(std::getline(rows, row));
  const ChildResult best =
      run("predict", recipe, {(folder_ / "photos/3.jpg").string(), weights, "--top=1"});
  ASSERT_EQ(best.exit_code, 0) << best.errors;
  EXPECT_EQ(best.output.substr(0, best.output.find('\n')), "name,class,probability");
  EXPECT_EQ(test::occurrences(best.output, "\n"), 2);
}

TEST_F(TaskTest, ListsOfClassNumbersAreNotLabelsOfSeveralClasses) {
  const std::string file = folder_ / "d.beton";
  const auto train_on = [&](const char* first, const char* second) {
    std::ofstream(folder_ / "list.jsonl") << R"({"x": [1, 2], "labels": )" << first << "}\n"
                                          << R"({"x": [3, 4], "labels": )" << second << "}\n";
    const ChildResult written =
        run_child({test::bin_dir() + "/precast", "write", folder_ / "list.jsonl", file},
                  std::chrono::minutes(3));
    EXPECT_EQ(written.exit_code, 0) << written.errors;
    return run("train",
               "data: {inputs: x, targets: labels}\ntraining: {loss: multi_label_bce}\n"
               "model: {arch: layers, params: {features: 2, layers: [linear]}}\n"
               "validation: {metrics: [f1]}\n",
               {"--training.batch_size=2", "--dry-run"});
  };
  EXPECT_EQ(train_on("[0, 1, 1]", "[1, 0, 0]").exit_code, 0);
  EXPECT_EQ(train_on("[0.25, 1, 0]", "[0.75, 0, 1]").exit_code, 0);
  const ChildResult numbers = train_on("[0, 1]", "[3, 1]");
  EXPECT_EQ(numbers.exit_code, 3);
  EXPECT_THAT(numbers.errors, Names("sample 1", "'labels'", "multi_label_bce", 3));
  EXPECT_EQ(train_on("[0, 1]", "[-1, 1]").exit_code, 3);
}

TEST_F(TaskTest, MasksHaveOnlyClassesOfTheModel) {
  test::put_file(folder_ / "p.png", test::png_file(test::gradient(40, 40)));
  const auto plan = [&](const std::string& mask) {
    write(
        "{\"image\": \"p.png\", \"mask\": [[0, 1], [2, 255]]}\n"
        "{\"image\": \"p.png\", \"mask\": " +
        mask + "}\n");
    // 2 x 2 outputs for an image of 32 x 32 px.
    return run("train",
               "data: {targets: mask}\ntraining: {loss: pixel_cross_entropy}\n"
               "model: {arch: layers, num_classes: 3, params: {layers: "
               "[conv: {out: 0, kernel: 16, stride: 16, padding: 0}]}}\n",
               {"--training.batch_size=2", "--dry-run"});
  };
  EXPECT_EQ(plan("[[2, 1], [255, 0]]").exit_code, 0);
  const ChildResult outside = plan("[[2, 1], [4, 0]]");
  EXPECT_EQ(outside.exit_code, 3);
  EXPECT_THAT(outside.errors, Names("sample 1", "'mask'", 4, "loss.ignore_index", 255));
  EXPECT_EQ(plan("[[2, 1], [-1, 0]]").exit_code, 3);
}

TEST_F(TaskTest, OutputsAreCheckedAtTheSizeOfTheEvaluation) {
  // The outputs have the size of the images only if 4 divides this size.
  const std::string recipe =
      "data: {targets: image}\ntraining: {loss: mse}\nvalidation: {metrics: [mse]}\n"
      "model: {arch: layers, params: {layers: [conv: {out: 3, stride: 4}, upsample: {scale: "
      "4}]}}\n";
  EXPECT_EQ(run("train", recipe, {"--dry-run", "--validation.resolution=40"}).exit_code, 0);
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--dry-run"}}) {
    std::vector<std::string> more = {"--validation.resolution=42"};
    more.insert(more.end(), how.begin(), how.end());
    const ChildResult result = run("train", recipe, more);
    EXPECT_EQ(result.exit_code, 2) << result.errors;
    EXPECT_THAT(result.errors, Names("training.loss", "validation.resolution", 42));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/r"));
}

TEST_F(TaskTest, AModelThatWeightsFilesCannotStoreIsRefused) {
  const std::string recipe =
      "plugins: [" + test::test_plugin_dir() + "/train_parts.so]\nmodel: {arch: complex_buffer}\n";
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--dry-run"}}) {
    const ChildResult result = run("train", recipe, how);
    EXPECT_EQ(result.exit_code, 2) << result.errors;
    EXPECT_THAT(result.errors,
                Names((folder_ / "r.yaml").string() + ":2:15", "model.arch", "'phases'"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/r"));
}

TEST_F(TaskTest, AnEvaluationNeedsNoTrainingSet) {
  const std::string samples = R"({"x": [0.5, 1.5], "label": 0})"
                              "\n"
                              R"({"x": [1.5, 0.5], "label": 1})"
                              "\n";
  write(samples);
  const std::string recipe = "model: {arch: layers, params: {features: 2, layers: [linear]}}\n";
  ASSERT_EQ(run("train", recipe, {"--training.batch_size=2"}).exit_code, 0);
  const std::vector<std::string> more = {
      "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string(),
      "--data.train_dataset=" + (folder_ / "absent.beton").string()};
  const ChildResult evaluated = run("eval", recipe, more);
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_EQ(run("train", "training: {eval_only: 1}\n" + recipe, more).exit_code, 0);
}

/// A recipe for an autoencoder. Its batches have no labels.
std::string autoencoder(const std::string& data, const std::string& more) {
  const std::string images = "{image: [center_crop: {ratio: 1}]}";
  return "plugins: [" + test::test_plugin_dir() + "/train_parts.so]\ndata: {" + data +
         "}\npipeline: {train: " + images + ", val: " + images + "}\n" +
         "training: {loss: copy}\nmodel: {arch: layers, params: {layers: [conv: {out: 3}]}" + more;
}

TEST_F(TaskTest, ALossWithoutTargetsNeedsNoLabels) {
  const std::string recipe = autoencoder("", ", num_classes: 1}\nlr: {lr: 0.01}\n");
  const ChildResult trained = run("train", recipe);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, testing::Not(testing::HasSubstr("TTA")))
      << "validation.lr_tta has no effect";
  EXPECT_EQ(summary().at("best_metric").at("name"), "val_loss");
  EXPECT_FALSE(summary().contains("top_1"));
  const double loss = summary().at("val_loss");
  const ChildResult evaluated =
      run("eval", recipe,
          {"--json", "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string()});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  const auto figures = nlohmann::json::parse(evaluated.output);
  EXPECT_NEAR(figures.at("val_loss").get<double>(), loss, 1e-6 * loss);
  EXPECT_FALSE(figures.contains("top_1"));
  // Outputs that are images cannot be written as a table.
  const std::string weights = "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string();
  const std::string array = folder_ / "o.npy";
  EXPECT_EQ(run("predict", recipe, {weights, "--output=" + array}).exit_code, 0);
  EXPECT_EQ(std::filesystem::file_size(array), 128U + 24 * 3 * 32 * 32 * sizeof(float));
  failpoints_ = "evaluator.before_batch=term@1";
  EXPECT_EQ(run("predict", recipe, {weights}).exit_code, 2) << "refused before the first batch";
  EXPECT_EQ(run("predict", recipe, {weights, "--json", "--output=" + array}).exit_code, 2);
  failpoints_.clear();
  // If the recipe names labels, metrics can use them.
  const std::string labelled =
      "data: {targets: label}\nvalidation: {metrics: [share: {of: 3}]}\n"
      "plugins: [" +
      test::test_plugin_dir() +
      "/train_parts.so]\ntraining: {loss: copy}\n"
      "model: {arch: layers, num_classes: 1, params: {layers: [conv: {out: 3}]}}\n";
  ASSERT_EQ(run("train", labelled, {"--logging.run_id=s"}).exit_code, 0);
  const auto with_labels = nlohmann::json::parse(std::ifstream(folder_ / "runs/s/summary.json"));
  EXPECT_DOUBLE_EQ(with_labels.at("share_of_3").get<double>(), 3.0 / 24);
}

TEST_F(TaskTest, ClassesAreThoseOfTheOutputThatTheLossReads) {
  std::ostringstream list;
  for (int i = 0; i < 14; ++i) {
    list << R"({"id": )" << 100 + i << R"(, "label": )" << i % 3 << R"(, "coarse": )" << i % 7
         << R"(, "x": [0.5, 1.5]})"
         << "\n";
  }
  write(list.str());
  const auto plan = [&](const std::string& output, const std::vector<std::string>& more = {}) {
    const std::string outputs = "{x: x, " + output + "}";
    std::vector<std::string> all = {"--training.batch_size=2", "--dry-run", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return run("train",
               "pipeline: {train: " + outputs + ", val: " + outputs + "}\n" +
                   "model: {arch: layers, params: {features: 2, layers: [linear]}}\n",
               all);
  };
  const auto classes = [](const ChildResult& planned) {
    EXPECT_EQ(planned.exit_code, 0) << planned.errors;
    const auto described = nlohmann::json::parse(planned.output, nullptr, false);
    return described.is_object() ? described.at("model").at("num_classes").get<int>() : 0;
  };
  EXPECT_EQ(classes(plan("label: label")), 3);
  EXPECT_EQ(classes(plan("label: coarse")), 7);
  EXPECT_EQ(classes(plan("y: coarse", {"--data.targets=[y]"})), 7);
  EXPECT_EQ(classes(plan("z: id, y: coarse", {"--data.targets=[y]"})), 7);
  // Transforms may change labels.
  const std::string replaced = "label: [replace_label: {indices: [1], new_label: 9}]";
  EXPECT_EQ(classes(plan(replaced)), 10);
  const ChildResult outside = plan(replaced, {"--model.num_classes=3"});
  EXPECT_EQ(outside.exit_code, 3);
  EXPECT_THAT(outside.errors, Names("sample 1", 9, 3));
}

TEST_F(TaskTest, PredictionsNeedNoMasks) {
  test::write_bytes(folder_ / "d.beton", test::golden_beton("masks_w1"));
  const std::string outputs = "{image: [center_crop: {ratio: 1}], mask: {geometry_of: image}}";
  const std::string recipe =
      "data: {targets: mask}\npipeline: {train: " + outputs + ", val: " + outputs + "}\n" +
      "training: {loss: pixel_cross_entropy}\n"
      "model: {arch: layers, num_classes: 256, params: {layers: [conv: {out: 0, kernel: 1}]}}\n"
      "lr: {lr: 0.01}\n";
  const ChildResult trained =
      run("train", recipe, {"--training.epochs=1", "--training.batch_size=2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  test::put_file(folder_ / "a.png", test::png_file(test::gradient(40, 40)));
  EXPECT_EQ(predicted_shape(recipe, {(folder_ / "a.png").string()}),
            (std::vector<std::int64_t>{1, 256, 32, 32}));
  EXPECT_EQ(predicted_shape(recipe, {}), (std::vector<std::int64_t>{6, 256, 32, 32}));
}

TEST_F(TaskTest, AnAutoencoderPredictsImageFiles) {
  const std::string recipe =
      "data: {targets: image}\ntraining: {loss: mse}\nvalidation: {metrics: [mse]}\n"
      "model: {arch: layers, params: {layers: [conv: {out: 3}]}}\nlr: {lr: 0.01}\n";
  const ChildResult trained = run("train", recipe, {"--training.epochs=1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  test::put_file(folder_ / "a.png", test::png_file(test::gradient(40, 40)));
  EXPECT_EQ(predicted_shape(recipe, {(folder_ / "a.png").string()}),
            (std::vector<std::int64_t>{1, 3, 32, 32}));
}

TEST_F(TaskTest, PredictionsOfADatasetNeedNoLabels) {
  const std::string samples[] = {R"({"x": [0.5, 1.5])", R"({"x": [1.5, 0.5])"};
  const std::string labelled = samples[0] + ", \"label\": 0}\n" + samples[1] + ", \"label\": 1}\n";
  write(labelled + labelled);
  write(samples[0] + "}\n" + samples[1] + "}\n", "unlabelled.beton");
  const std::string model =
      "model: {arch: layers, params: {features: 2, layers: [linear]}}\nlr: {lr: 0.01}\n";
  const std::string listed = "pipeline: {train: {label: label, x: x}, val: {label: label, x: x}}\n";
  const ChildResult trained = run("train", model, {"--training.batch_size=2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const std::string unlabelled = "--data.val_dataset=" + (folder_ / "unlabelled.beton").string();
  for (const std::string& recipe : {model, "data: {inputs: x}\n" + model, listed + model})
    EXPECT_EQ(predicted_shape(recipe, {unlabelled}), (std::vector<std::int64_t>{2, 2})) << recipe;
  // A field that the model reads must exist.
  write("{\"label\": 1}\n{\"label\": 0}\n", "no_inputs.beton");
  const ChildResult refused =
      run("predict", listed + "data: {inputs: x}\n" + model,
          {"--data.val_dataset=" + (folder_ / "no_inputs.beton").string(),
           "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string()});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, Names("pipeline.val.x", "'x'"));
}

struct Refusal {
  const char* recipe;
  /// Line and column in the recipe, and the key.
  const char* location;
  const char* key;
};

TEST_F(TaskTest, FieldsThatDoNotFitAreRefusedBeforeTheStart) {
  const Refusal refusals[] = {
      {"training: {loss: mse}\n", ":1:18", "training.loss"},
      {"training: {loss: multi_label_bce}\ndata: {targets: label}\n", ":2:17", "data.targets"},
      {"training: {loss: pixel_cross_entropy}\ndata: {targets: label}\n", ":2:17", "data.targets"},
      {"data: {targets: image}\n", ":1:17", "data.targets"},
      {"training: {loss: mse}\ndata: {targets: label}\nmodel: {num_classes: 3}\n", ":3:22",
       "model.num_classes"},
  };
  for (const Refusal& refusal : refusals) {
    for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--dry-run"}}) {
      const ChildResult result = run("train", refusal.recipe, how);
      EXPECT_EQ(result.exit_code, 2) << refusal.recipe << result.errors;
      EXPECT_THAT(result.errors,
                  Names((folder_ / "r.yaml").string() + refusal.location, refusal.key));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/r"));
}

TEST_F(TaskTest, WhatNeedsATargetIsRefusedWithoutOne) {
  const std::string fits = ", num_classes: 1}\n";
  const struct {
    std::string recipe, location, key;
  } refusals[] = {
      {autoencoder("", "}\n"), "", "model.num_classes"},
      {autoencoder("inputs: [image, view2]", fits), ":2:16", "data.inputs"},
      {autoencoder("targets: label", fits), ":2:17", "data.targets"},
      {autoencoder("", fits) + "methods: [mixup]\n", ":6:11", "methods[0]"},
      {autoencoder("", fits) + "validation: {metrics: [top_k]}\n", ":6:24",
       "validation.metrics[0]"},
      {autoencoder("", fits) + "validation: {metrics: [share]}\n", ":6:23", "validation.metrics"},
  };
  for (const auto& refusal : refusals) {
    for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--dry-run"}}) {
      const ChildResult result = run("train", refusal.recipe, how);
      EXPECT_EQ(result.exit_code, 2) << refusal.recipe << result.errors;
      EXPECT_THAT(result.errors,
                  Names((folder_ / "r.yaml").string() + refusal.location, refusal.key));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/r"));
}

TEST_F(TaskTest, WhatAPluginsMetricReturnsIsCheckedAlsoForPrecastsOwnNetworks) {
  const std::string recipe = "plugins: [" + test::test_plugin_dir() +
                             "/train_parts.so]\nvalidation: {metrics: [miscount]}\n";
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--dry-run"}}) {
    const ChildResult result = run("train", recipe, how);
    EXPECT_EQ(result.exit_code, 2) << result.errors;
    EXPECT_THAT(result.errors, Names((folder_ / "r.yaml").string() + ":2:23", "validation.metrics",
                                     "miscount", "[1]", "[2]"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/r"));
}

TEST_F(TaskTest, WhatFailsOnTheCpuIsAWarningInThePlanForAGpuOnlyWithPlugins) {
  const std::vector<std::string> on_gpu = {"--dry-run", "--training.device=cuda"};
  const ChildResult plugin =
      run("train", autoencoder("", ", num_classes: 1}\nvalidation: {metrics: [share]}\n"), on_gpu);
  EXPECT_EQ(plugin.exit_code, 0) << plugin.errors;
  EXPECT_THAT(plugin.errors, Names("warning", "validation.metrics", "share"));
  // Outputs of shape [2, 3, 32, 32] for targets of shape [2].
  const ChildResult own = run("train",
                              "training: {loss: mse}\ndata: {targets: label}\n"
                              "model: {arch: layers, params: {layers: [conv: {out: 3}]}}\n",
                              on_gpu);
  EXPECT_EQ(own.exit_code, 2);
  EXPECT_THAT(own.errors, Names("training.loss"));
}

TEST_F(TaskTest, PartsThatDoNotFitTheLossAreRefused) {
  const Refusal refusals[] = {
      {"training: {loss: mse}\nmethods: [mixup]\n", ":2:11", "methods[0]"},
      {"training: {loss: mse}\nvalidation: {metrics: [r2, top_k]}\n", ":2:28",
       "validation.metrics[1]"},
      {"validation: {metrics: [map]}\n", ":1:24", "validation.metrics[0]"},
      {"training: {loss: mse}\nvalidation: {best_metric: top_1}\n", ":2:27",
       "validation.best_metric"},
  };
  for (const Refusal& refusal : refusals) {
    const ChildResult result = run("train", refusal.recipe, {"--data.targets=label"});
    EXPECT_EQ(result.exit_code, 2) << refusal.recipe << result.errors;
    EXPECT_THAT(result.errors,
                Names((folder_ / "r.yaml").string() + refusal.location, refusal.key));
  }
  EXPECT_EQ(run("train", "training: {loss: mse, label_smoothing: 0.1}\ndata: {targets: label}\n")
                .exit_code,
            2);
}

}  // namespace
}  // namespace precast::tools
