#include "tools/experiments/grid/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tools/experiments/grid/check.h"
#include "tools/experiments/grid/slurm_array.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ElementsAre;

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() { std::ofstream(folder_ / "r.yaml") << "training: {epochs: 1}\n"; }
  std::string path() const { return folder_ / "s.yaml"; }
  Sweep read(const std::string& text, const std::vector<Override>& overrides = {}) {
    std::ofstream(path()) << "recipe: " << (folder_ / "r.yaml").string() << "\n" << text;
    return read_sweep(path(), overrides);
  }
  static Override given(const std::string& key, const std::string& value) {
    Diagnostics diagnostics;
    return {key, parse_override(value, {"command line", 0, 0}, diagnostics)};
  }
  std::string refused(const std::string& text) {
    try {
      read(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  static std::vector<std::string> values(const Sweep& sweep, const std::string& key) {
    std::vector<std::string> all;
    for (const Trial& trial : sweep.trials) {
      for (const Setting& setting : trial.settings) {
        if (setting.key == key) all.push_back(setting.value);
      }
    }
    return all;
  }
  std::vector<std::string> axis(const std::string& text) {
    return values(read("axes: {a.b: " + text + "}"), "a.b");
  }

  test::TemporaryFolder folder_;
};

TEST_F(SweepTest, KeysOfTheCommandLineAreInEveryTrialAndReplaceThoseOfSet) {
  const std::string text = "axes: {lr.lr: [0.1, 0.2]}\nset: {training.epochs: 3}";
  const Sweep sweep = read(
      text, {given("training.epochs", "2"), given("data.subset", "8"), given("data.subset", "9")});
  EXPECT_THAT(values(sweep, "training.epochs"), ElementsAre("2", "2"));
  EXPECT_THAT(values(sweep, "data.subset"), ElementsAre("9", "9"));
  // Trials with different keys have different ids.
  EXPECT_NE(sweep.trials[0].id, read(text).trials[0].id);
  const std::string script = slurm_script(sweep, "/bin/precast");
  EXPECT_THAT(script, testing::HasSubstr("--training.epochs=2 --data.subset=9 --trial="));
  EXPECT_THAT([&] { read(text, {given("lr.lr", "1")}); },
              testing::ThrowsMessage<ConfigError>(Names("lr.lr", "command line")));
}

TEST_F(SweepTest, ABatchScriptQuotesNamesForSbatch) {
  Sweep sweep = read("axes: {lr.lr: [0.1, 0.2]}");
  sweep.path = "my sweep #2.yaml";
  sweep.folder = "/runs/a b%j \"c\"";
  const std::string script = slurm_script(sweep, "/bin/precast");
  EXPECT_THAT(script, testing::HasSubstr("\n#SBATCH --job-name=\"precast-my sweep #2\"\n"));
  EXPECT_THAT(script,
              testing::HasSubstr("\n#SBATCH --output=\"/runs/a b%%j \\\"c\\\"/slurm-%a.out\"\n"));
  // sbatch ignores #SBATCH lines after the first command.
  EXPECT_LT(script.rfind("#SBATCH"), script.find("\ntrials=("));
}

TEST_F(SweepTest, LaysOutEveryCombinationWithSeedsFastest) {
  const Sweep sweep = read(
      "axes: {lr.lr: [0.1, 0.2], training.optimizer: [sgd, lamb]}\nseeds: 2\n"
      "set: {training.epochs: 3}");
  EXPECT_THAT(values(sweep, "lr.lr"),
              ElementsAre("0.1", "0.1", "0.1", "0.1", "0.2", "0.2", "0.2", "0.2"));
  EXPECT_THAT(values(sweep, "training.seed"), ElementsAre("0", "1", "0", "1", "0", "1", "0", "1"));
  EXPECT_EQ(values(sweep, "training.epochs").size(), 8U);
  EXPECT_THAT(sweep.trials[0].id, testing::StartsWith("lr0.1_optimizersgd_seed0-"));
  EXPECT_THAT(group_of(sweep, sweep.trials[3]), ElementsAre("0.1", "lamb"));
  EXPECT_EQ(sweep.folder, "runs/s");
}

TEST_F(SweepTest, ZippedAxesGoTogether) {
  const Sweep sweep = read("axes: {a.a: [1, 2], b.b: [x, y], c.c: [3, 4]}\nzip: [[a.a, c.c]]\n");
  EXPECT_THAT(values(sweep, "a.a"), ElementsAre("1", "1", "2", "2"));
  EXPECT_THAT(values(sweep, "c.c"), ElementsAre("3", "3", "4", "4"));
  EXPECT_THAT(values(sweep, "b.b"), ElementsAre("x", "y", "x", "y"));
}

TEST_F(SweepTest, IdsDoNotChangeWhenTheSweepGrows) {
  const Sweep small = read("axes: {lr.lr: [0.1], training.optimizer: [sgd]}");
  const Sweep large = read("axes: {training.optimizer: [lamb, sgd], lr.lr: [0.3, 0.1]}");
  EXPECT_EQ(large.trials[3].id, small.trials[0].id) << "whatever the order of keys";
  EXPECT_THAT(small.trials[0].id, testing::MatchesRegex("lr0.1_optimizersgd-[0-9a-f]{16}"));
  EXPECT_EQ(small.trials[0].id,
            read("axes: {lr.lr: [0.2, 0.1], training.optimizer: [sgd]}").trials[1].id);
}

TEST_F(SweepTest, IdsDependOnKeysThatChangeNoResultOnlyIfTheyAreAxes) {
  const std::string axes = "axes: {lr.lr: [0.1]}\n";
  const std::string id = read(axes).trials[0].id;
  EXPECT_EQ(read(axes + "set: {data.num_workers: 4}").trials[0].id, id);
  const Sweep moved = read(axes, {given("data.train_dataset", "/mnt/train.beton")});
  EXPECT_EQ(moved.trials[0].id, id);
  EXPECT_THAT(values(moved, "data.train_dataset"), ElementsAre("/mnt/train.beton"));
  EXPECT_NE(read(axes + "set: {data.subset: 8}").trials[0].id, id);
  const Sweep datasets = read("axes: {lr.lr: [0.1], data.train_dataset: [a.beton, b.beton]}");
  EXPECT_NE(datasets.trials[0].id, datasets.trials[1].id);
}

TEST_F(SweepTest, ARunThatAnEarlierVersionNamedKeepsItsId) {
  const std::string text = "folder: " + (folder_ / "g").string() +
                           "\naxes: {lr.lr: [0.1, 0.2]}\nset: {data.num_workers: 4}";
  const Sweep before = read(text);
  const std::string whole = trial_id({{"lr.lr", "0.1"}, {"data.num_workers", "4"}});
  const std::string old_id = "lr0.1" + whole.substr(whole.rfind('-'));
  EXPECT_NE(before.trials[0].id, old_id);
  std::filesystem::create_directories(folder_ / ("g/runs/" + old_id));
  const Sweep after = read(text);
  EXPECT_EQ(after.trials[0].id, old_id);
  EXPECT_EQ(after.trials[1].id, before.trials[1].id);
}

TEST_F(SweepTest, ReadsEveryFormOfAxis) {
  EXPECT_THAT(axis("[[1, 2], {x: y}]"), ElementsAre("[1, 2]", "{x: y}"));
  EXPECT_THAT(axis("{from: 0.1, to: 0.3, step: 0.1}"), ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_THAT(axis("{from: 3, to: 1, step: -1}"), ElementsAre("3", "2", "1"));
  EXPECT_THAT(axis("{uniform: {low: 0, high: 1, n: 3}}"), ElementsAre("0", "0.5", "1"));
  EXPECT_THAT(axis("{log_uniform: {low: 1e-4, high: 1e-2, n: 3}}"),
              ElementsAre("0.0001", "0.001", "0.01"));
}

TEST_F(SweepTest, DrawsTheSameValuesEachTimeAndOthersForOtherSeeds) {
  const std::string drawn = "{log_uniform: {low: 1e-4, high: 1e-2, samples: 200}}";
  const auto first = axis(drawn);
  ASSERT_EQ(first.size(), 200U);
  EXPECT_EQ(first, axis(drawn));
  int low = 0;
  for (const std::string& text : first) {
    const double value = std::stod(text);
    EXPECT_GE(value, 1e-4);
    EXPECT_LT(value, 1e-2);
    if (value < 1e-3) ++low;
  }
  EXPECT_NEAR(low, 100, 35);
  EXPECT_NE(values(read("seed: 1\naxes: {a.b: " + drawn + "}"), "a.b"), first);
  // Each choice is drawn once before any is drawn again.
  auto choices = axis("{random: {choices: [a, b, c], samples: 3}}");
  EXPECT_THAT(choices, testing::UnorderedElementsAre("a", "b", "c"));
}

TEST_F(SweepTest, ReportsAllMistakesWithTheirLocations) {
  const std::string errors = refused(
      "metrik: top_1\n"
      "axes:\n"
      "  lr.lr: [0.1, 0.2, 0.1]\n"
      "  a.a: 3\n"
      "  a.b: {uniform: {low: 2, high: 1, n: 3}}\n"
      "  a.c: {gauss: {}}\n"
      "  a.d: {from: 1, to: 2, step: -1}\n"
      "  a.e: {log_uniform: {low: 0, high: 1}}\n"
      "  a.f: []\n"
      "  logging.folder: [x]\n"
      "set: {lr.lr: 1}\n"
      "zip: [[lr.lr, a.z]]\n"
      "grid: {devices: gpu}\n"
      "early_stop: halving\n");
  const std::string s = path();
  const std::vector<std::string> parts = {s + ":2:1: metrik",
                                          s + ":4:21: lr.lr",
                                          s + ":5:8: axes.a.a",
                                          s + ":6:18: axes.a.b",
                                          s + ":7:9: axes.a.c",
                                          s + ":8:8: axes.a.d",
                                          s + ":9:28: axes.a.e.log_uniform.low",
                                          s + ":10:8: axes.a.f",
                                          s + ":11:20: logging.folder",
                                          s + ":12:14: lr.lr",
                                          s + ":13:15: zip",
                                          s + ":14:17: grid.devices",
                                          s + ":15:13: early_stop"};
  EXPECT_THAT(errors, test::NamesMatcher(parts));
  EXPECT_THAT(errors, Names("2 and 1", "gauss", "a.z", "auto", "gpu", "median", "asha", "halving"));
  EXPECT_EQ(std::ranges::count(errors, '\n'), 12) << errors;
  EXPECT_THAT(refused("axes: {a.a: [1, 2], b.b: [1]}\nzip: [[a.a, b.b]]"),
              Names(s + ":3:13", "zip", 2, 1));
}

TEST_F(SweepTest, TheSameNumberWrittenInTwoWaysIsGivenTwice) {
  EXPECT_THAT(refused("axes: {lr.lr: [0.1, 0.10]}"), Names(path() + ":2:21: lr.lr", "0.10"));
  EXPECT_THAT(refused("axes: {lr.lr: [1, 0.5, 1e0]}"), Names(path() + ":2:24: lr.lr", "1e0"));
  EXPECT_THAT(refused("axes: {a.a: [1]}\nseeds: [3, 03]"), Names(path() + ":3:12", "03"));
  EXPECT_EQ(refused("axes: {lr.lr: [0.1, 0.11], a.a: [x1, x01]}"), "");
  EXPECT_EQ(refused("seeds: [9007199254740993, 9007199254740992]"), "")
      << "equal as floating-point numbers";
}

TEST_F(SweepTest, ReadsRulesOfEarlyStopping) {
  EXPECT_EQ(read("early_stop: median").early_stop.rule, EarlyStopOptions::Rule::median);
  const Sweep sweep = read("metric: val_loss\nearly_stop: {asha: {min_epochs: 2, reduction: 4}}");
  EXPECT_EQ(sweep.early_stop.reduction, 4);
  EXPECT_EQ(sweep.early_stop.metric, "val_loss");
  EXPECT_FALSE(sweep.early_stop.maximise);
  EXPECT_FALSE(sweep.maximise);
}

TEST_F(SweepTest, RanksByTheRecipesMetricInItsDirection) {
  EXPECT_EQ(read("axes: {a.a: [1, 2]}").metric, "top_1");
  std::ofstream(folder_ / "r.yaml") << "validation: {best_metric: mse}\n";
  const Sweep sweep = read("early_stop: asha\naxes: {a.a: [1, 2]}");
  EXPECT_EQ(sweep.metric, "mse");
  EXPECT_FALSE(sweep.maximise);
  EXPECT_EQ(sweep.early_stop.metric, "mse");
  EXPECT_FALSE(sweep.early_stop.maximise);
  EXPECT_TRUE(read("metric: r2").maximise);
}

TEST_F(SweepTest, RanksByWhatDecidesForTheRecipesLoss) {
  const std::pair<const char*, const char*> cases[] = {
      {"training: {loss: huber}", "r2"},
      {"training: {loss: mse}\nvalidation: {metrics: [mse, r2]}", "mse"},
      {"training: {loss: multi_label_bce}", "map"},
      {"training: {loss: multi_label_bce}\nvalidation: {metrics: [f1: {average: micro}]}",
       "f1_micro"},
      {"training: {loss: multi_label_bce}\nvalidation: {metrics: [f1]}", "f1_macro"},
      {"training: {loss: pixel_cross_entropy}", "mean_iou"},
      {"training: {loss: l1}\nvalidation: {metrics: []}", "val_loss"},
      {"validation: {metrics: [f1]}", "top_1"},
      {"training: {loss: bce}\nvalidation: {metrics: [f1]}", "top_1"}};
  for (const auto& [recipe, metric] : cases) {
    std::ofstream(folder_ / "r.yaml") << recipe << "\n";
    const Sweep sweep = read("axes: {a.a: [1, 2]}");
    EXPECT_EQ(sweep.metric, metric) << recipe;
    EXPECT_EQ(sweep.maximise, sweep.metric != "mse" && sweep.metric != "val_loss") << recipe;
  }
}

TEST_F(SweepTest, KeysOfTheSweepDecideTheMetricBeforeThoseOfTheRecipe) {
  std::ofstream(folder_ / "r.yaml") << "training: {loss: multi_label_bce}\n";
  EXPECT_EQ(read("axes: {a.a: [1, 2]}").metric, "map");
  EXPECT_EQ(read("set: {training.loss: bce}").metric, "top_1");
  EXPECT_EQ(read("set: {training.loss: mse}").metric, "r2");
  EXPECT_EQ(read("set: {training.loss: mse, validation.metrics: [mse, r2]}").metric, "mse");
  EXPECT_EQ(read("set: {validation.metrics: [f1: {average: micro}]}").metric, "f1_micro");
  EXPECT_EQ(read("set: {validation.metrics: []}").metric, "val_loss");
  const Sweep sweep = read("early_stop: asha\nset: {validation.best_metric: map}",
                           {given("validation.best_metric", "val_loss")});
  EXPECT_EQ(sweep.metric, "val_loss") << "the command line replaces the key of `set`";
  EXPECT_FALSE(sweep.maximise);
  EXPECT_EQ(sweep.early_stop.metric, "val_loss");
  EXPECT_EQ(read("metric: f1_macro\nset: {training.loss: mse}").metric, "f1_macro");
}

TEST_F(SweepTest, AxesDecideTheMetricIfAllTheirValuesLeadToIt) {
  EXPECT_EQ(read("axes: {training.loss: [mse, huber]}").metric, "r2");
  EXPECT_EQ(read("axes: {training.loss: [mse, l1], validation.metrics: [[mse], [mse, r2]]}").metric,
            "mse");
  EXPECT_EQ(read("axes: {training.loss: [mse, bce]}").metric, "top_1");
  EXPECT_EQ(
      read("axes: {training.loss: [multi_label_bce], validation.metrics: [[f1], [map]]}").metric,
      "map");
}

TEST_F(SweepTest, OnlyCombinationsOfZippedAxesDecideTheMetric) {
  const std::string axes =
      "axes: {training.loss: [mse, bce], validation.best_metric: ['', r2], a.a: [1, 2]}\n";
  EXPECT_EQ(read(axes).metric, "top_1") << "bce without best_metric";
  EXPECT_EQ(read(axes + "zip: [[a.a, training.loss, validation.best_metric]]").metric, "r2");
  EXPECT_THAT(refused("axes: {training.loss: [mse, bce], validation.best_metric: [r2]}\n"
                      "zip: [[training.loss, validation.best_metric]]"),
              Names("zip", 2, 1));
}

TEST_F(SweepTest, EarlyStopsCompareTheUsualMetricIfEpochsLackTheOneToRankBy) {
  std::ofstream(folder_ / "r.yaml") << "training: {loss: mse}\n";
  for (const char* metric : {"images_per_second", "train_minutes", "eval_minutes", "wait_minutes",
                             "val_images", "world_size", "replaced_samples"}) {
    EXPECT_THAT(refused("early_stop: {median: {metric: " + std::string(metric) + "}}"),
                Names(path() + ":2:13", "early_stop", metric));
    const Sweep sweep = read("early_stop: asha\ndirection: max\nmetric: " + std::string(metric));
    EXPECT_EQ(sweep.metric, metric);
    EXPECT_EQ(sweep.early_stop.metric, "r2");
    EXPECT_TRUE(sweep.early_stop.maximise);
  }
  const Sweep given = read("early_stop: {asha: {metric: val_loss}}\nmetric: train_minutes");
  EXPECT_EQ(given.early_stop.metric, "val_loss");
  EXPECT_FALSE(given.early_stop.maximise);
}

TEST_F(SweepTest, AnUnknownMetricIsReportedOnce) {
  for (const char* rule : {"", "early_stop: median"}) {
    const std::string errors = refused("metric: share_of_1\n" + std::string(rule));
    EXPECT_EQ(test::occurrences(errors, "share_of_1"), 1) << errors;
  }
  EXPECT_THAT(refused("early_stop: {median: {metric: share_of_1}}"),
              Names(path() + ":2:13", "early_stop", "share_of_1"));
}

TEST_F(SweepTest, TheFewestMinutesAreTheBest) {
  for (const char* metric : {"train_minutes", "eval_minutes", "wait_minutes"})
    EXPECT_FALSE(read("metric: " + std::string(metric)).maximise) << metric;
}

TEST_F(SweepTest, AMetricOfAPluginNeedsADirection) {
  EXPECT_THAT(refused("metric: share_of_1"), Names(path() + ":2:9", "metric", "share_of_1"));
  const Sweep sweep = read("metric: share_of_1\ndirection: min\nearly_stop: median");
  EXPECT_FALSE(sweep.maximise);
  EXPECT_FALSE(sweep.early_stop.maximise);
  EXPECT_THAT(refused("early_stop: {median: {metric: train_minutes}}"), Names("early_stop"));
  // The key `direction` does not apply to the metric that early stops compare here.
  std::ofstream(folder_ / "r.yaml") << "validation: {best_metric: share_of_1}\n";
  const std::string by_time = "metric: train_minutes\ndirection: min\nearly_stop: ";
  const std::string errors = refused(by_time + "median");
  EXPECT_THAT(errors, Names(path() + ":4:13", "early_stop", "share_of_1", "metric"));
  EXPECT_FALSE(test::names(errors, "direction")) << errors;
  EXPECT_EQ(refused(by_time + "{median: {metric: val_loss}}"), "");
}

TEST_F(SweepTest, RefusesAnEmptyListOfSeeds) {
  EXPECT_THAT(refused("axes: {a.a: [1, 2]}\nseeds: []"), Names(path() + ":3:8", "seeds"));
}

TEST_F(SweepTest, RefusesMoreTrialsThanCanBeCounted) {
  std::string axes = "axes:\n";
  // 2^64 trials: computed in 64 bits, their number would be 0.
  for (const char* key : {"a", "b", "c", "d"})
    axes += std::string("  a.") + key + ": {from: 1, to: 65536, step: 1}\n";
  EXPECT_THAT(refused(axes), Names("axes", 100000));
}

TEST_F(SweepTest, RefusesEarlyStopsByFiguresThatEpochsLack) {
  const std::string asha = "early_stop: asha\naxes: {a.a: [1, 2]}\n";
  EXPECT_EQ(refused(asha), "");
  EXPECT_THAT(refused(asha + "set: {logging.log_level: 0}"),
              Names(path() + ":4:26", "early_stop", "top_1", "logging.log_level"));
  std::ofstream(folder_ / "r.yaml") << "logging: {log_level: 0}\n";
  EXPECT_THAT(refused(asha), Names("early_stop", "top_1", "logging.log_level"));
  EXPECT_EQ(refused(asha + "set: {logging.log_level: 1}"), "");
  EXPECT_EQ(refused("early_stop: {median: {metric: train_loss}}"), "");
  EXPECT_EQ(refused("axes: {a.a: [1, 2]}"), "");
}

TEST_F(SweepTest, RefusesTrialsThatOnlyEvaluate) {
  const std::string axes = "axes: {a.a: [1, 2]}\n";
  EXPECT_THAT(refused(axes + "set: {training.eval_only: true}"),
              Names(path() + ":3:27", "training.eval_only", "precast eval"));
  EXPECT_THAT(refused("axes: {training.eval_only: [false, true]}"),
              Names(path() + ":2:36", "training.eval_only"));
  EXPECT_EQ(refused(axes + "set: {training.eval_only: false}"), "");
  std::ofstream(folder_ / "r.yaml") << "training: {eval_only: 1}\n";
  EXPECT_THAT(refused(axes), Names((folder_ / "r.yaml").string() + ":1:23", "training.eval_only"));
  EXPECT_EQ(refused(axes + "set: {training.eval_only: false}"), "");
}

TEST_F(SweepTest, ReadsEverySweepOfConfigs) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(test::source_dir());
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs/sweeps")) {
    EXPECT_GE(read_sweep(entry.path()).trials.size(), 12U) << entry.path();
    ++count;
  }
  std::filesystem::current_path(before);
  EXPECT_GE(count, 2);
}

TEST_F(SweepTest, ChecksEveryValueInFewTrials) {
  const Sweep sweep = read("axes: {a.a: [1, 2, 3], b.b: [1, 2], c.c: [1, 2]}");
  ASSERT_EQ(sweep.trials.size(), 12U);
  std::set<std::string> seen;
  const auto chosen = covering_trials(sweep);
  for (const Trial* trial : chosen) {
    for (const Setting& setting : trial->settings) seen.insert(setting.key + setting.value);
  }
  EXPECT_EQ(chosen.size(), 3U);
  EXPECT_EQ(seen.size(), 7U);
}

}  // namespace
}  // namespace precast::tools
