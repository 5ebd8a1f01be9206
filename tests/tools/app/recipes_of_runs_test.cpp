// Training with recipes that precast wrote: the params.json of a run, and the recipe of `precast
// new recipe`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/bytes.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/small_network.h"

namespace precast::tools {
namespace {

using test::Names;
using test::TemporaryFolder;

/// 24 Imagenette images, labels 0 to 23.
class RecipesOfRunsTest : public ::testing::Test {
 protected:
  RecipesOfRunsTest() {
    test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1"));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  static ChildResult train_small(std::vector<std::string> args) {
    args.insert(args.begin(), "train");
    for (const std::string& option : test::small_network()) args.push_back(option);
    return precast(args);
  }
  static ChildResult precast(std::vector<std::string> args) {
    args.insert(args.begin(), test::bin_dir() + "/precast");
    return run_child(args, std::chrono::minutes(3));
  }
  /// The losses in the log.
  [[nodiscard]] std::vector<nlohmann::json> losses(const std::string& run) const {
    std::ifstream file(path("runs/" + run + "/log"));
    std::vector<nlohmann::json> all;
    for (std::string line; std::getline(file, line);) {
      const auto entry = nlohmann::json::parse(line);
      if (entry.contains("loss")) all.push_back(entry.at("loss"));
    }
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(RecipesOfRunsTest, TheParametersOfARunTrainTheSameAgain) {
  const ChildResult first = precast(
      {"train", "--data.train_dataset=" + path("d.beton"), "--data.val_dataset=" + path("d.beton"),
       "--training.batch_size=8", "--resolution.min_res=32", "--resolution.max_res=32",
       "--validation.resolution=32", "--training.epochs=1", "--training.use_blurpool=1",
       "--lr.lr=0.01", "--logging.every=1", "--data.subset=random:16",
       "--logging.folder=" + path("runs"), "--logging.run_id=a", "--training.device=cpu"});
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const ChildResult again = precast({"train", path("runs/a/params.json"), "--logging.run_id=b"});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  ASSERT_EQ(losses("a").size(), 2U);
  EXPECT_EQ(losses("a"), losses("b"));
}

TEST_F(RecipesOfRunsTest, TheParametersOfARunStartANewRunAndTheOldOneIsKept) {
  const ChildResult first = train_small(
      {"--data.train_dataset=" + path("d.beton"), "--data.val_dataset=" + path("d.beton"),
       "--training.batch_size=8", "--resolution.min_res=32", "--resolution.max_res=32",
       "--validation.resolution=32", "--training.epochs=1", "--lr.lr=0.01",
       "--logging.folder=" + path("runs"), "--logging.run_id=a", "--checkpoint.resume=auto",
       "--training.device=cpu"});
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const auto runs = [&] {
    const std::filesystem::directory_iterator all(path("runs"));
    return std::distance(begin(all), end(all));
  };
  const std::string params = path("runs/a/params.json");
  const std::vector<std::byte> before = test::read_bytes(params);
  const ChildResult again = precast({"train", params, "--lr.lr=0.02"});
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(runs(), 2);
  // Nothing is left to train, so params.json still describes the training.
  const ChildResult forced = precast({"train", params, "--lr.lr=0.02", "--training.batch_size=4",
                                      "--logging.run_id=a", "--checkpoint.resume=force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.errors;
  EXPECT_EQ(runs(), 2);
  EXPECT_EQ(test::read_bytes(params), before);
}

TEST_F(RecipesOfRunsTest, ANewRecipeTrainsAsItIs) {
  const std::string recipe = path("mine.yaml");
  const ChildResult made = precast({"new", "recipe", recipe, "--train-dataset", path("d.beton"),
                                    "--val-dataset", path("d.beton")});
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  // To save time, the run is shorter and its images are smaller than in the recipe.
  const ChildResult run = precast(
      {"train", recipe, "--training.epochs=1", "--resolution.min_res=32", "--resolution.max_res=32",
       "--validation.resolution=32", "--logging.folder=" + path("runs"), "--logging.run_id=r"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
}

TEST_F(RecipesOfRunsTest, ADryRunShowsDataOrderPipelinesAndNormalisation) {
  const std::vector<std::string> args = {"train",
                                         "--dry-run",
                                         "--data.train_dataset=" + path("d.beton"),
                                         "--data.val_dataset=" + path("d.beton"),
                                         "--data.subset=8",
                                         "--data.order=sequential",
                                         "--training.batch_size=4",
                                         "--training.device=cpu"};
  std::vector<std::string> as_json = args;
  as_json.emplace_back("--json");
  const ChildResult json = precast(as_json);
  ASSERT_EQ(json.exit_code, 0) << json.errors;
  EXPECT_THAT(json.errors, Names("data.subset", 2, 10, "8, 9"));
  const auto plan = nlohmann::json::parse(json.output);
  EXPECT_EQ(plan.at("datasets").at("train").at("samples"), 24);
  EXPECT_EQ(plan.at("datasets").at("val").at("file"), path("d.beton"));
  EXPECT_GT(plan.at("datasets").at("train").at("image_px").at("width").at("max"), 0);
  EXPECT_EQ(plan.at("order").at("name"), "sequential");
  EXPECT_EQ(plan.at("order").at("subset"), "8");
  EXPECT_EQ(plan.at("pipeline").at("train").at("steps").at(0), "random_resized_crop");
  EXPECT_EQ(plan.at("pipeline").at("val").at("steps").at(0).at("center_crop").at("ratio"), 0.875);
  EXPECT_NEAR(plan.at("pipeline").at("val").at("mean").at(0).get<double>(), 123.675, 1e-9);
  const ChildResult text = precast(args);
  ASSERT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output,
              Names("sequential", "random_resized_crop", "center_crop", "123.7", path("d.beton")));
}

TEST_F(RecipesOfRunsTest, SeveralFilesTrainAsTheirMerge) {
  const std::string d = path("d.beton"), all = path("all.beton");
  ASSERT_EQ(precast({"merge", d, d, d, all}).exit_code, 0);
  const std::string several = "[" + d + "," + d + "," + d + "]";
  const auto train = [&](const std::string& files, const std::string& order,
                         const std::string& in_memory, const std::string& run) {
    return train_small(
        {"--data.train_dataset=" + files, "--data.val_dataset=" + files, "--training.batch_size=8",
         "--resolution.min_res=32", "--resolution.max_res=32", "--validation.resolution=32",
         "--training.epochs=1", "--lr.lr=0.01", "--logging.every=1", "--data.subset=10:60",
         "--data.order=" + order, "--data.in_memory=" + in_memory,
         "--logging.folder=" + path("runs"), "--logging.run_id=" + run, "--training.device=cpu"});
  };
  for (const std::string order : {"random", "quasi_random"}) {
    const ChildResult merged = train(all, order, "1", "all_" + order);
    ASSERT_EQ(merged.exit_code, 0) << merged.errors;
    EXPECT_EQ(losses("all_" + order).size(), 6U);
    for (const std::string in_memory : {"0", "1", "2"}) {
      const std::string run = order + in_memory;
      const ChildResult files = train(several, order, in_memory, run);
      ASSERT_EQ(files.exit_code, 0) << files.errors;
      EXPECT_EQ(losses(run), losses("all_" + order)) << run;
    }
  }
  const auto figures = [&](const std::string& run) {
    const ChildResult eval = precast({"eval", path("runs/" + run), "--json"});
    EXPECT_EQ(eval.exit_code, 0) << eval.errors;
    return nlohmann::json::parse(eval.output);
  };
  EXPECT_EQ(figures("random0").at("val_loss"), figures("all_random").at("val_loss"));
  EXPECT_EQ(figures("random0").at("dataset"), nlohmann::json({d, d, d}));
  EXPECT_EQ(figures("all_random").at("dataset"), all);
  EXPECT_EQ(figures("random0").at("images"), 72);
  // The run's params.json is a recipe that contains the list.
  const ChildResult again =
      precast({"train", path("runs/random0/params.json"), "--logging.run_id=again"});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(losses("again"), losses("random0"));
}

TEST_F(RecipesOfRunsTest, AListOfSamplesMayMoveButMustNotChangeOnResume) {
  const auto write_list = [&](const std::string& name, const std::string& text) {
    std::ofstream(path(name)) << text;
  };
  const auto train = [&](const std::string& list) {
    return train_small(
        {"--data.train_dataset=" + path("d.beton"), "--data.val_dataset=" + path("d.beton"),
         "--training.batch_size=4", "--resolution.min_res=32", "--resolution.max_res=32",
         "--validation.resolution=32", "--training.epochs=1", "--lr.lr=0.01", "--logging.every=1",
         "--data.subset=@" + path(list), "--logging.folder=" + path("runs"), "--logging.run_id=r",
         "--checkpoint.resume=auto", "--training.device=cpu"});
  };
  write_list("ids.txt", "0:6\n# and\n20\n17\n");
  const ChildResult first = train("ids.txt");
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_EQ(losses("r").size(), 2U);
  std::filesystem::rename(path("ids.txt"), path("moved.txt"));
  const ChildResult moved = train("moved.txt");
  EXPECT_EQ(moved.exit_code, 0) << moved.errors;
  write_list("moved.txt", "0:6\n20\n18\n");
  const ChildResult changed = train("moved.txt");
  EXPECT_EQ(changed.exit_code, 4);
  EXPECT_THAT(changed.errors, Names("data.subset"));
  write_list("moved.txt", "0:6\n24\n");
  const ChildResult outside = train("moved.txt");
  EXPECT_EQ(outside.exit_code, 2);
  EXPECT_THAT(outside.errors, Names("data.subset", "moved.txt:2", "24"));
  const ChildResult gone = train("gone.txt");
  EXPECT_EQ(gone.exit_code, 2);
  EXPECT_THAT(gone.errors, Names("data.subset", "gone.txt"));
}

TEST_F(RecipesOfRunsTest, AFinishedRunThatWasContinuedAndStoppedIsUnfinished) {
  std::vector<std::string> train = {test::bin_dir() + "/precast",
                                    "train",
                                    "--data.train_dataset=" + path("d.beton"),
                                    "--data.val_dataset=" + path("d.beton"),
                                    "--training.batch_size=8",
                                    "--resolution.min_res=32",
                                    "--resolution.max_res=32",
                                    "--validation.resolution=32",
                                    "--lr.lr=0.01",
                                    "--logging.folder=" + path("runs"),
                                    "--logging.run_id=r",
                                    "--training.device=cpu"};
  for (const std::string& option : test::small_network()) train.push_back(option);
  const auto run = [&](const std::vector<std::string>& more, const std::string& failpoint) {
    std::vector<std::string> all = {"/usr/bin/env", "PRECAST_FAILPOINTS=" + failpoint};
    all.insert(all.end(), train.begin(), train.end());
    all.insert(all.end(), more.begin(), more.end());
    return run_child(all, std::chrono::minutes(3));
  };
  const auto weights = [&] {
    const ChildResult eval = precast({"eval", path("runs/r"), "--json"});
    EXPECT_EQ(eval.exit_code, 0) << eval.errors;
    return nlohmann::json::parse(eval.output).at("weights").get<std::string>();
  };
  const ChildResult first = run({"--training.epochs=1"}, "");
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_THAT(weights(), testing::HasSubstr("final_weights"));
  const std::vector<std::string> more = {"--training.epochs=3", "--checkpoint.resume=force"};
  const ChildResult stopped = run(more, "trainer.before_step=term@2");
  ASSERT_EQ(stopped.exit_code, 85) << stopped.errors;
  EXPECT_TRUE(std::filesystem::exists(path("runs/r/summary.json")));
  EXPECT_THAT(weights(), testing::HasSubstr("ckpt-"));
  const ChildResult rest = run(more, "");
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_THAT(weights(), testing::HasSubstr("final_weights"));
}

TEST_F(RecipesOfRunsTest, MissingDatasetsAreReportedTogether) {
  std::ofstream(path("r.yaml")) << "data:\n  train_dataset: a.beton\n  val_dataset: b.beton\n";
  for (const std::string mode : {"--dry-run", "--training.device=cpu"}) {
    const ChildResult run = precast({"train", path("r.yaml"), mode});
    EXPECT_EQ(run.exit_code, 5) << mode;
    EXPECT_THAT(run.errors, Names("r.yaml:2:18", "data.train_dataset", "a.beton", "r.yaml:3:16",
                                  "data.val_dataset", "b.beton"));
  }
}

}  // namespace
}  // namespace precast::tools
