#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "framework/core/archive/npy.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/system.h"
#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/small_network.h"
#include "tools/app/reserved_figures.h"
#include "tools/experiments/grid/recipe_metric.h"

namespace precast::tools {
namespace {

using test::Names;
using test::TemporaryFolder;

/// Hides all GPUs, so that a dry run may have more ranks than this host has GPUs.
const std::vector<std::string> kNoGpus = {"/usr/bin/env", "CUDA_VISIBLE_DEVICES="};

/// Runs the programs as a user does, on a dataset that FFCV wrote (24 Imagenette images, labels 0
/// to 23).
class TrainTest : public ::testing::Test {
 protected:
  TrainTest() {
    test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1"));
    common_ = {"--data.train_dataset=" + data(),
               "--data.val_dataset=" + data(),
               "--training.batch_size=8",
               "--resolution.min_res=32",
               "--resolution.max_res=32",
               "--validation.resolution=32",
               "--training.epochs=2",
               "--lr.lr=0.01",
               "--logging.folder=" + (folder_ / "runs").string(),
               "--logging.run_id=r",
               "--training.device=cpu"};
    for (const std::string& option : test::small_network()) common_.push_back(option);
  }
  std::string data() const { return folder_ / "d.beton"; }

  /// Runs `starter... precast args[0] common... args[1...]`. If a key is given twice, the last
  /// value is used.
  ChildResult precast(const std::vector<std::string>& args,
                      const std::vector<std::string>& starter = {}) const {
    std::vector<std::string> all = starter;
    all.insert(all.end(), {test::bin_dir() + "/precast", args[0]});
    all.insert(all.end(), common_.begin(), common_.end());
    all.insert(all.end(), args.begin() + 1, args.end());
    return run_child(all, std::chrono::minutes(3));
  }
  std::vector<nlohmann::json> log(const std::string& run) const {
    std::ifstream file(folder_ / ("runs/" + run + "/log"));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::vector<double> losses(const std::string& run) const {
    std::vector<double> values;
    for (const auto& line : log(run)) {
      if (line.contains("loss")) values.push_back(line.at("loss"));
    }
    return values;
  }

  TemporaryFolder folder_;
  std::vector<std::string> common_;
};

TEST_F(TrainTest, WritesACompleteRunFolder) {
  const ChildResult run = precast({"train", "--logging.every=1"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, Names((folder_ / "runs/r").string()));
  for (const char* name :
       {"params.json", "run.json", "log", "summary.json", "final_weights.pt",
        "final_weights.safetensors", "report.html", "events.out.tfevents.precast"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("runs/r/" + std::string(name)))) << name;
  }
  const auto lines = log("r");
  ASSERT_EQ(lines.size(), 2 * 3 + 2U);
  EXPECT_EQ(lines[0].at("step"), 0);
  EXPECT_GT(lines[0].at("loss").get<double>(), 1.0);
  EXPECT_EQ(lines[3].at("epoch"), 0);
  EXPECT_EQ(lines[3].count("top_1"), 1U);
  EXPECT_EQ(lines[3].at("steps"), 3);
  EXPECT_GE(lines[3].at("train_time").get<double>(), lines[3].at("wait_time").get<double>());
  EXPECT_GT(lines[3].at("loader_time").at("decoding").get<double>(), 0);
}

/// tools/app/reserved_figures.h refers to this test by name.
using ReservedFiguresTest = TrainTest;

TEST_F(ReservedFiguresTest, ContainEveryKeyThatARunWritesNextToItsMetrics) {
  const auto check = [](const nlohmann::json& written, const char* file) {
    for (const auto& [key, value] : written.items())
      EXPECT_TRUE(is_reserved_figure(key) || key == "top_1" || key == "top_5")
          << file << ": " << key;
  };
  const std::string option = "--result-json=" + (folder_ / "result.json").string();
  const ChildResult run = precast({"train", option, "--logging.every=1"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const auto lines = log("r");
  for (const auto& line : lines) check(line, "log");
  const auto summary = nlohmann::json::parse(std::ifstream(folder_ / "runs/r/summary.json"));
  check(summary, "summary.json");
  // The last line of the log describes an epoch.
  for (const auto& [key, value] : summary.items()) {
    if (value.is_number()) {
      EXPECT_EQ(is_per_epoch(key), lines.back().contains(key)) << key;
    }
  }
  check(nlohmann::json::parse(std::ifstream(folder_ / "result.json")), "result.json");
  const ChildResult evaluated =
      run_child({test::bin_dir() + "/precast", "eval", folder_ / "runs/r", "--json"},
                std::chrono::minutes(3));
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  check(nlohmann::json::parse(evaluated.output), "eval");
  const ChildResult failed = precast({"train", option, "--lr.lr=-1"});
  ASSERT_EQ(failed.exit_code, 2);
  check(nlohmann::json::parse(std::ifstream(folder_ / "result.json")), "result.json");
}

TEST_F(TrainTest, AFolderWhoseNameIsNotUtf8CanTrain) {
  const std::string there = folder_ / "caf\xe9";
  std::filesystem::create_directory(there);
  const ChildResult run = precast({"train"}, {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", there});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const auto facts = nlohmann::json::parse(std::ifstream(folder_ / "runs/r/run.json"));
  EXPECT_THAT(facts.at("started_in").get<std::string>(), testing::HasSubstr("caf"));
}

TEST_F(TrainTest, APageThatCannotBeWrittenFailsNoRun) {
  std::filesystem::create_directories(folder_ / "runs/r/report.html");
  const ChildResult run = precast({"train"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names("warning", "report.html"));
}

TEST_F(TrainTest, ResultFileTellsHowItEnded) {
  const auto result = [&] { return nlohmann::json::parse(std::ifstream(folder_ / "result.json")); };
  const std::string option = "--result-json=" + (folder_ / "result.json").string();
  ASSERT_EQ(precast({"train", option}).exit_code, 0);
  const auto summary = nlohmann::json::parse(std::ifstream(folder_ / "runs/r/summary.json"));
  EXPECT_EQ(result().at("exit_code"), 0);
  EXPECT_GT(result().at("seconds"), 0);
  EXPECT_EQ(result().at("params").at("lr.lr"), 0.01);
  for (const auto& [key, value] : summary.items()) EXPECT_EQ(result().at(key), value) << key;
  // The run folder already exists. The new result file replaces the old one.
  ASSERT_EQ(precast({"train", option}).exit_code, 5);
  EXPECT_EQ(result().at("exit_code"), 5);
  EXPECT_THAT(result().at("error").get<std::string>(), Names(folder_ / "runs/r"));
  EXPECT_FALSE(result().contains("top_1"));
  ASSERT_EQ(precast({"train", option, "--lr.lr=-1"}).exit_code, 2);
  EXPECT_THAT(result().at("error").get<std::string>(), Names("lr.lr", -1));
  // If a launcher starts the ranks, only rank 0 writes the result file.
  ASSERT_EQ(precast({"train", option, "--logging.run_id=ranks", "--dist.nproc=2"}).exit_code, 0);
  EXPECT_EQ(result().at("world_size"), 2);
  EXPECT_EQ(result().at("exit_code"), 0);
  const ChildResult failed =
      precast({"train", option, "--logging.run_id=failed", "--dist.nproc=2"},
              {"/usr/bin/env", "PRECAST_FAILPOINTS=trainer.before_step=error@2"});
  EXPECT_EQ(failed.exit_code, 5) << failed.errors;
  EXPECT_EQ(result().at("exit_code"), 5);
  EXPECT_THAT(result().at("error").get<std::string>(), Names("trainer.before_step"));
  EXPECT_EQ(result().at("params").at("lr.lr"), 0.01);
}

TEST_F(TrainTest, TheResultFileOfAnEvaluationHasItsFigures) {
  const auto result = [&] { return nlohmann::json::parse(std::ifstream(folder_ / "result.json")); };
  const std::string option = "--result-json=" + (folder_ / "result.json").string();
  ASSERT_EQ(precast({"train"}).exit_code, 0);
  const auto summary = nlohmann::json::parse(std::ifstream(folder_ / "runs/r/summary.json"));
  const std::string weights =
      "--model.weights=" + (folder_ / "runs/r/final_weights.safetensors").string();
  for (const int ranks : {1, 2}) {
    const ChildResult run =
        precast({"train", weights, "--training.eval_only=1", option,
                 ranks == 1 ? "--dist.nproc=" : "--dist.nproc=" + std::to_string(ranks)});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_EQ(result().at("exit_code"), 0);
    EXPECT_GT(result().at("seconds").get<double>(), 60 * result().at("eval_minutes").get<double>());
    EXPECT_EQ(result().at("params").at("lr.lr"), 0.01);
    EXPECT_EQ(result().at("val_images"), 24);
    EXPECT_EQ(result().at("world_size"), ranks);
    EXPECT_EQ(result().at("top_1"), summary.at("top_1"));
    EXPECT_NEAR(result().at("val_loss").get<double>(), summary.at("val_loss").get<double>(), 1e-5);
    EXPECT_FALSE(result().contains("run_folder"));
  }
  for (const std::string rank : {"0", "1"}) {
    const ChildResult failed =
        precast({"train", weights, "--training.eval_only=1", option, "--dist.nproc=2"},
                {"/usr/bin/env", "PRECAST_FAILPOINTS=evaluator.before_batch=error@1%" + rank});
    EXPECT_EQ(failed.exit_code, 5) << failed.errors;
    EXPECT_EQ(result().at("exit_code"), 5);
    EXPECT_THAT(result().at("error").get<std::string>(), Names("evaluator.before_batch"));
    EXPECT_FALSE(result().contains("val_loss"));
  }
  EXPECT_EQ(precast({"train", "--training.eval_only=1", option}).exit_code, 2);
  EXPECT_THAT(result().at("error").get<std::string>(), Names("model.weights"));
  EXPECT_TRUE(result().contains("params"));
}

TEST_F(TrainTest, TheResultFileOfADryRunHasTheKeys) {
  const std::string file = folder_ / "result.json";
  ASSERT_EQ(precast({"train", "--dry-run", "--result-json=" + file}).exit_code, 0);
  const auto result = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(result.at("exit_code"), 0);
  EXPECT_EQ(result.at("params").at("lr.lr"), 0.01);
}

TEST_F(TrainTest, TheErrorOfAnInvalidCommandLineReplacesAnOlderResult) {
  const std::string file = folder_ / "result.json";
  const auto expect_error = [&](const std::vector<std::string>& args, const std::string& fact) {
    std::ofstream(file) << R"({"exit_code": 0, "top_1": 0.9})";
    EXPECT_EQ(precast(args).exit_code, 2);
    const auto result = nlohmann::json::parse(std::ifstream(file));
    EXPECT_EQ(result.at("exit_code"), 2);
    EXPECT_THAT(result.at("error").get<std::string>(), Names(fact));
    EXPECT_FALSE(result.contains("top_1"));
  };
  expect_error({"train", "--nonsense", "--result-json", file}, "nonsense");
  expect_error({"train", "--result_json=" + file, "--lr.lr"}, "lr.lr");
}

TEST_F(TrainTest, AnUnwritableResultFileIsReportedBeforeTrainingAndHidesNoFailure) {
  // With `ulimit -f 0`, no data can be written to files, so writing the result fails. The recipe is
  // also wrong.
  const ChildResult both = run_child(
      {"/bin/bash", "-c", "ulimit -f 0; exec \"$@\"", "bash", test::bin_dir() + "/precast", "train",
       "--lr.lr=-1", "--result-json=" + (folder_ / "result.json").string()},
      std::chrono::minutes(1));
  EXPECT_EQ(both.exit_code, 2) << both.errors;
  EXPECT_THAT(both.errors, Names("error", "lr.lr", "warning", "result.json"));
  const ChildResult nowhere =
      precast({"train", "--result-json=" + (folder_ / "no/r.json").string()});
  EXPECT_EQ(nowhere.exit_code, 5);
  EXPECT_THAT(nowhere.errors, Names("no/r.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(TrainTest, AResultFileReplacesWhatALinkPointsToButNoDevice) {
  std::ofstream(folder_ / "target") << "{}";
  std::filesystem::create_symlink("target", folder_ / "link");
  ASSERT_EQ(precast({"train", "--lr.lr=-1", "--result-json", folder_ / "link"}).exit_code, 2);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(folder_ / "target")).at("exit_code"), 2);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/full", folder_ / "full");
  std::filesystem::create_directory(folder_ / "folder");
  for (const std::string name : {"pipe", "full", "folder"}) {
    const auto type = std::filesystem::status(folder_ / name).type();
    const ChildResult run = precast({"train", "--result-json", folder_ / name});
    EXPECT_EQ(run.exit_code, 5) << name;
    EXPECT_THAT(run.errors, Names(name == "full" ? "/dev/full" : (folder_ / name).string()));
    EXPECT_EQ(std::filesystem::status(folder_ / name).type(), type) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(TrainTest, ACompleteRunHasItsResultsEvenIfNoCheckpointCouldBeSaved) {
  const std::string failure = "checkpoint.before_file=error";
  const auto run = [&](const std::string& name, const std::string& epochs,
                       const std::string& failpoints) {
    return precast({"train", "--logging.run_id=" + name, "--training.epochs=" + epochs,
                    "--result-json=" + (folder_ / (name + ".json")).string()},
                   {"/usr/bin/env", "PRECAST_FAILPOINTS=" + failpoints});
  };
  for (const std::string epochs : {"1", "4"}) {
    const std::string name = "epochs" + epochs;
    const ChildResult whole = run(name, epochs, failure);
    EXPECT_EQ(whole.exit_code, 0) << whole.errors;
    EXPECT_THAT(whole.errors, Names("warning", "checkpoint.before_file"));
    for (const char* file : {"final_weights.safetensors", "summary.json", "report.html"})
      EXPECT_TRUE(std::filesystem::exists(folder_ / ("runs/" + name) / file)) << file;
    const auto result = nlohmann::json::parse(std::ifstream(folder_ / (name + ".json")));
    EXPECT_EQ(result.at("exit_code"), 0);
    EXPECT_TRUE(result.contains("top_1"));
  }
  // An incomplete run needs its checkpoints.
  EXPECT_EQ(run("epochs5", "5", failure).exit_code, 5);
  EXPECT_EQ(run("stopped", "2", failure + ",trainer.before_step=term@2").exit_code, 5);
}

TEST_F(TrainTest, AResumedRunWarnsOfEpochsThatItsLogLacks) {
  ASSERT_EQ(precast({"train"}).exit_code, 0);
  std::filesystem::remove(folder_ / "runs/r/log");
  std::filesystem::remove(folder_ / "runs/r/summary.json");
  const ChildResult run = precast({"train", "--checkpoint.resume=auto"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names("warning", folder_ / "runs/r/log", 1, 2, 0));
}

TEST_F(TrainTest, ResumingAFinishedRunReproducesItsMetrics) {
  const auto figures = [&] {
    const auto all = nlohmann::json::parse(std::ifstream(folder_ / "runs/r/summary.json"));
    return std::vector<double>{all.at("top_1"), all.at("val_loss"), all.at("train_loss"),
                               all.at("eval_minutes"), all.at("epochs")};
  };
  ASSERT_EQ(precast({"train"}).exit_code, 0);
  const std::vector<double> before = figures();
  EXPECT_GT(before[2], 0.5);
  // A run that is killed after its last checkpoint leaves no summary.
  std::filesystem::remove(folder_ / "runs/r/summary.json");
  ASSERT_EQ(precast({"train", "--checkpoint.resume=auto"}).exit_code, 0);
  EXPECT_EQ(figures(), before);
  ASSERT_EQ(precast({"train", "--checkpoint.resume=auto"}).exit_code, 0);
  EXPECT_EQ(figures(), before);
}

TEST_F(TrainTest, ResumeRejectsAnotherBestMetric) {
  ASSERT_EQ(precast({"train", "--training.epochs=1"}).exit_code, 0);
  const ChildResult other = precast({"train", "--training.epochs=1", "--checkpoint.resume=auto",
                                     "--validation.best_metric=val_loss"});
  EXPECT_EQ(other.exit_code, 4) << other.errors;
  EXPECT_THAT(other.errors, Names("plan.best_metric", "top_1", "val_loss"));
  // This value is the default.
  const ChildResult same = precast({"train", "--training.epochs=1", "--checkpoint.resume=auto",
                                    "--validation.best_metric=top_1"});
  EXPECT_EQ(same.exit_code, 0) << same.errors;
}

TEST_F(TrainTest, AFinishedRunWithoutCheckpointsIsNotTrainedAgain) {
  ASSERT_EQ(precast({"train"}).exit_code, 0);
  const std::vector<std::byte> before = test::read_bytes(folder_ / "runs/r/log");
  std::filesystem::remove_all(folder_ / "runs/r/checkpoints");
  const ChildResult again = precast({"train", "--checkpoint.resume=auto"});
  EXPECT_EQ(again.exit_code, 5) << again.errors;
  EXPECT_THAT(again.errors, Names((folder_ / "runs/r").string(), "logging.run_id"));
  EXPECT_EQ(test::read_bytes(folder_ / "runs/r/log"), before);
}

TEST_F(TrainTest, ARunThatFailedInItsFirstStepDoesNotBlockItsName) {
  const ChildResult failed =
      precast({"train"}, {"/usr/bin/env", "PRECAST_FAILPOINTS=trainer.before_step=error@1"});
  ASSERT_EQ(failed.exit_code, 5) << failed.errors;
  EXPECT_TRUE(log("r").empty());
  const ChildResult again = precast({"train"});
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(log("r").size(), 2U);
  EXPECT_EQ(precast({"train"}).exit_code, 5) << "the second run has results";
}

TEST_F(TrainTest, WithoutAReaderOfItsMessagesARunIsTrainedToItsEnd) {
  for (const std::string redirection : {"2>&-", "2> >(exec 0<&-)"}) {
    const ChildResult run = precast({"train", "--logging.every=1", "--checkpoint.resume=never",
                                     "--logging.run_id=r" + std::to_string(redirection.size())},
                                    {"/bin/bash", "-c", "exec \"$@\" " + redirection, "bash"});
    EXPECT_EQ(run.exit_code, 0) << redirection;
    // If messages for standard error went into the log, its lines would not parse.
    EXPECT_EQ(log("r" + std::to_string(redirection.size())).size(), 2 * 3 + 2U) << redirection;
  }
}

TEST_F(TrainTest, PrintsALinePerEpochAndPrunesTheCheckpointsOfAFinishedRun) {
  const ChildResult run = precast({"train", "--training.epochs=3", "--checkpoint.keep_best=0"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names("epoch 1/3", "epoch 2/3", "epoch 3/3"));
  const auto checkpoints = [&](const std::string& name) {
    const std::filesystem::directory_iterator all(folder_ / ("runs/" + name + "/checkpoints"));
    return std::distance(begin(all), end(all));
  };
  EXPECT_EQ(checkpoints("r"), 1);
  ASSERT_EQ(precast({"train", "--logging.run_id=more", "--training.epochs=3",
                     "--checkpoint.keep_best=0", "--checkpoint.keep_finished=2"})
                .exit_code,
            0);
  EXPECT_EQ(checkpoints("more"), 2);
}

TEST_F(TrainTest, SameSeedSameLossesForAnyNumberOfWorkers) {
  std::vector<std::vector<double>> all;
  for (const std::string workers : {"1", "2", "5"}) {
    const ChildResult run = precast({"train", "--logging.every=1", "--data.num_workers=" + workers,
                                     "--logging.run_id=w" + workers});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    all.push_back(losses("w" + workers));
  }
  EXPECT_EQ(all[0].size(), 6U);
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
}

TEST_F(TrainTest, LoaderThreadsComeFromTheCoresNotFromOmpNumThreads) {
  // torchrun sets OMP_NUM_THREADS to 1.
  const auto loader_threads = [&](const std::string& run, const std::string& more) {
    const ChildResult child =
        precast({"train", "--logging.run_id=" + run, more}, {"/usr/bin/env", "OMP_NUM_THREADS=1"});
    EXPECT_EQ(child.exit_code, 0) << child.errors;
    const auto facts =
        nlohmann::json::parse(std::ifstream(folder_ / ("runs/" + run + "/run.json")));
    return facts.at("loader_threads").get<int>();
  };
  EXPECT_EQ(loader_threads("one", "--training.epochs=1"), usable_cores());
  EXPECT_EQ(loader_threads("two", "--dist.nproc=2"), std::max(1, usable_cores() / 2));
  EXPECT_EQ(loader_threads("key", "--data.num_workers=3"), 3);
}

TEST_F(TrainTest, ARunThatContinuesWithOtherComputeThreadsWarns) {
  const int cores = usable_cores();
  const auto stop = [&](const std::string& run, const std::string& threads) {
    const ChildResult stopped =
        precast({"train", "--logging.run_id=" + run},
                {"/usr/bin/env", "PRECAST_FAILPOINTS=trainer.before_step=term@2", threads});
    ASSERT_EQ(stopped.exit_code, 85) << stopped.errors;
  };
  const auto resume = [&](const std::string& run, const std::vector<std::string>& starter) {
    const ChildResult resumed =
        precast({"train", "--checkpoint.resume=auto", "--logging.run_id=" + run}, starter);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
    return resumed.errors;
  };
  const std::string more = std::to_string(cores + 1);
  stop("same", "OMP_NUM_THREADS=" + more);
  EXPECT_THAT(resume("same", {"/usr/bin/env", "OMP_NUM_THREADS=" + more}),
              testing::Not(testing::HasSubstr("compute threads")));
  stop("more", "OMP_NUM_THREADS=1");
  EXPECT_THAT(resume("more", {"/usr/bin/env", "OMP_NUM_THREADS=" + more}),
              Names("warning", "compute threads", 1, cores + 1, "OMP_NUM_THREADS=1"));
  stop("kept", "OMP_NUM_THREADS=1");
  const std::vector<std::string> unset = {"/usr/bin/env", "-u", "OMP_NUM_THREADS"};
  EXPECT_THAT(resume("kept", unset), testing::Not(testing::HasSubstr("compute threads")));
  if (cores == 1) GTEST_SKIP() << "there is only one core";
  stop("fewer", "OMP_NUM_THREADS=" + std::to_string(cores));
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  std::vector<std::string> one_core = unset;
  one_core.insert(one_core.end(), {"taskset", "-c", std::to_string(core)});
  EXPECT_THAT(resume("fewer", one_core), Names("warning", "compute threads", cores, 1));
}

TEST_F(TrainTest, PreflightDoesNotChangeTheWeights) {
  for (const std::string preflight : {"off", "on"}) {
    const ChildResult run =
        precast({"train", "--logging.every=1", "--resolution.min_res=24", "--resolution.end_ramp=1",
                 "--validation.batch_size=7", "--training.preflight=" + preflight,
                 "--logging.run_id=" + preflight});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
  }
  EXPECT_EQ(losses("on"), losses("off"));
  EXPECT_EQ(log("on").back().at("val_loss"), log("off").back().at("val_loss"));
}

TEST_F(TrainTest, PredictAndEvalAgreeWithTraining) {
  ASSERT_EQ(precast({"train"}).exit_code, 0);
  const std::string weights = "--model.weights=" + (folder_ / "runs/r/final_weights.pt").string();
  const ChildResult eval = precast({"eval", weights, "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.errors;
  const auto summary = nlohmann::json::parse(std::ifstream(folder_ / "runs/r/summary.json"));
  const auto figures = nlohmann::json::parse(eval.output);
  EXPECT_EQ(figures.at("top_1"), summary.at("top_1"));
  EXPECT_EQ(figures.at("classes"), summary.at("classes"));
  const auto sum = [&](const char* key) {
    const auto counts = figures.at("classes").at(key).get<std::vector<int>>();
    return std::accumulate(counts.begin(), counts.end(), 0);
  };
  EXPECT_EQ(sum("images"), 24);
  EXPECT_EQ(sum("top_1_correct"), figures.at("top_1_correct"));
  ASSERT_EQ(precast({"predict", weights, "-o", folder_ / "logits.npy"}).exit_code, 0);
  EXPECT_EQ(read_npy(folder_ / "logits.npy").shape, (std::vector<std::int64_t>{24, 10}));
  ASSERT_EQ(precast({"predict", weights, "-o", folder_ / "logits.csv"}).exit_code, 0);
  std::ifstream csv(folder_ / "logits.csv");
  std::string header;
  std::getline(csv, header);
  EXPECT_THAT(header, testing::StartsWith("sample,logit_0,logit_1,"));
}

TEST_F(TrainTest, WrongInputEndsWithItsOwnExitCodeAndNothingLeftBehind) {
  const auto fails = [&](const std::vector<std::string>& args, int code,
                         const std::vector<std::string>& facts) {
    const ChildResult run = precast(args);
    EXPECT_EQ(run.exit_code, code) << args[0] << " " << args.back() << ": " << run.errors;
    EXPECT_THAT(run.errors, test::NamesMatcher(facts));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "runs")) << args.back();
  };
  const std::string d = folder_.path();
  const std::vector<std::byte> whole = test::golden_beton("img_prop_nette_w1");
  test::write_bytes(folder_ / "cut.beton", std::span(whole).first(3000));
  common_.erase(common_.begin(), common_.begin() + 2);
  const std::string val = "--data.val_dataset=" + data(), train = "--data.train_dataset=" + data();
  fails({"train", val}, 2, {"data.train_dataset"});
  fails({"train", train}, 2, {"data.val_dataset"});
  fails({"train", val, "--data.train_dataset=" + d + "/none.beton"}, 5, {d + "/none.beton"});
  fails({"train", val, "--data.train_dataset=" + d + "/cut.beton"}, 3, {d + "/cut.beton"});
  fails({"train", d + "/none.yaml", val, train}, 5, {d + "/none.yaml"});
  fails({"train", val, train, "--training.epoch=1"}, 2, {"training.epoch", "training.epochs"});
  fails({"train", val, train, "--dist.nproc=many"}, 2, {"dist.nproc", "auto", "4096", "many"});
  fails({"train", val, train, "--training.cuda_graphs=on"}, 2,
        {"training.cuda_graphs", "auto", "off", "CPU"});
  fails({"train", val, train, "--training.cuda_graphs=step"}, 2,
        {"training.cuda_graphs", "auto", "off", "CPU", "step"});
  fails({"train", val, train, "--model.num_classes=3"}, 3, {data(), "[0, 3)"});
  fails({"eval", val}, 2, {"model.weights"});
  fails({"eval", val, "--model.weights=" + data()}, 4, {data()});
  fails({"predict", val, "--model.weights=x", "-o", d + "/x.txt"}, 2,
        {d + "/x.txt", ".npy", ".csv"});
  fails({"train", "--jsn"}, 2, {"--jsn", "--json"});
}

TEST_F(TrainTest, ABatchLargerThanTheDatasetIsRefused) {
  const ChildResult run = precast({"train", "--training.batch_size=25"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, Names("training.batch_size", 24, data(), 25));
}

TEST_F(TrainTest, ABatchTooSmallForItsBatchNormsIsRefusedWithAndWithoutPreflight) {
  for (const std::string preflight : {"off", "on"}) {
    const ChildResult run = precast(
        {"train", "--training.batch_size=3", "--training.micro_batches=3", "--resolution.min_res=4",
         "--resolution.max_res=4", "--training.preflight=" + preflight});
    EXPECT_EQ(run.exit_code, 1) << preflight << ": " << run.errors;
    EXPECT_THAT(run.errors, Names("training.batch_size", "1 sample", "4 px",
                                  "training.micro_batches: 3", "resolution.min_res"));
  }
}

TEST_F(TrainTest, AnUnwritableRunFolderIsNamed) {
  const ChildResult run = precast({"train", "--logging.folder=/proc/precast"});
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_THAT(run.errors, Names("/proc/precast"));
}

TEST_F(TrainTest, DryRunShowsThePlanAndTrainsNothing) {
  common_.clear();
  const ChildResult run =
      precast({"train", test::source_dir() + "/configs/imagenet/rn50_16_epochs.yaml", "--dry-run",
               "--train-samples", "1281167", "--json", "--per-step"},
              kNoGpus);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const auto plan = nlohmann::json::parse(run.output);
  EXPECT_EQ(plan.at("steps_per_epoch"), 312);
  EXPECT_EQ(plan.at("plan").size(), 16U);
  EXPECT_EQ(plan.at("plan")[12].at("resolution"), 192);
  EXPECT_EQ(plan.at("plan")[0].at("lr_per_step").size(), 312U);
}

TEST_F(TrainTest, DryRunCountsFusedBatchNormsAndWarnsIfThereAreNone) {
  common_.clear();
  const std::vector<std::string> command = {
      "train",     test::source_dir() + "/configs/imagenet/rn50_16_epochs.yaml",
      "--dry-run", "--train-samples",
      "1281167",   "--json"};
  const auto kernels = [&](const std::vector<std::string>& keys, const auto& errors) {
    std::vector<std::string> all = command;
    all.insert(all.end(), keys.begin(), keys.end());
    const ChildResult run = precast(all, kNoGpus);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, errors);
    return nlohmann::ordered_json::parse(run.output).at("kernels").dump();
  };
  using testing::HasSubstr;
  const auto quiet = testing::Not(HasSubstr("model.kernels"));
  EXPECT_EQ(kernels({"--training.device=cpu"}, quiet),
            R"({"setting":"auto","fused":0,"reference":{},"blurs":0,"max_pools":0,"stems":0})");
  const std::string on_cpu = kernels({"--training.device=cpu", "--model.kernels=fused"},
                                     Names("model.kernels", 53, "CPU"));
  EXPECT_THAT(on_cpu, HasSubstr(R"("fused":0,)"));
  EXPECT_THAT(kernels({"--training.device=cuda", "--model.kernels=fused"}, testing::_),
              testing::AnyOf(testing::AllOf(HasSubstr(R"("fused":53,)"),
                                            HasSubstr(R"("blurs":6,"max_pools":1,"stems":1)")),
                             HasSubstr(R"(without CUDA":53)")));
}

TEST_F(TrainTest, DryRunReportsRecordedGraphsAndObstacles) {
  common_.clear();
  const auto graphs = [&](std::vector<std::string> keys) {
    keys.insert(keys.begin(),
                {"train", test::source_dir() + "/configs/imagenet/rn18_16_epochs.yaml", "--dry-run",
                 "--json", "--training.device=cuda"});
    const ChildResult run = precast(keys, kNoGpus);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return nlohmann::ordered_json::parse(run.output).at("graphs");
  };
  const std::string step = "--training.cuda_graphs=step";
  EXPECT_EQ(graphs({}).dump(), R"({"setting":"auto","records":"passes","obstacles":[]})");
  EXPECT_EQ(graphs({step}).dump(), R"({"setting":"step","records":"step","obstacles":[]})");
  const auto sam = graphs({step, "--methods=[sam]"});
  EXPECT_EQ(sam.at("records"), "passes");
  EXPECT_THAT(sam.at("obstacles").dump(), Names("sam"));
  const auto ranks = graphs({step, "--dist.nproc=2"});
  EXPECT_EQ(ranks.at("records"), "none");
  EXPECT_EQ(ranks.at("obstacles").size(), 1U);
}

TEST_F(TrainTest, FineTuningTakesOtherClassesAndKeepsWhatIsFrozen) {
  common_.insert(common_.end(), {"--model.arch=resnet18", "--model.params={}"});
  ASSERT_EQ(precast({"train", "--training.epochs=0", "--model.num_classes=1000"}).exit_code, 0);
  const auto first = load_weights(folder_ / "runs/r/final_weights.safetensors");
  const ChildResult run =
      precast({"train", "--training.epochs=1", "--training.freeze=[conv1, layer1]",
               "--model.weights=" + first.path().string(), "--logging.run_id=tuned"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Names("fc.bias", "fc.weight"));
  EXPECT_THAT(run.errors, Names("13 tensors", "conv1.weight"));  // conv1 and the 12 of layer1
  const auto tuned = load_weights(folder_ / "runs/tuned/final_weights.safetensors");
  const auto same = [&](const char* name) {
    return std::ranges::equal(first.find(name)->bytes, tuned.find(name)->bytes);
  };
  EXPECT_TRUE(same("conv1.weight"));
  EXPECT_TRUE(same("layer1.1.conv2.weight"));
  EXPECT_FALSE(same("layer2.0.conv1.weight"));
  EXPECT_EQ(tuned.find("fc.bias")->shape, std::vector<std::int64_t>{10});
  const ChildResult none = precast({"train", "--training.freeze=[conv9]"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.errors, Names("training.freeze", "conv9"));
}

TEST_F(TrainTest, EvalOnlyEvaluatesTheGivenWeights) {
  ASSERT_EQ(precast({"train", "--training.epochs=0"}).exit_code, 0);
  const std::string weights =
      "--model.weights=" + (folder_ / "runs/r/final_weights.safetensors").string();
  const ChildResult run = precast({"train", weights, "--training.eval_only=1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(nlohmann::json::parse(run.output).at("images"), 24);
}

}  // namespace
}  // namespace precast::tools
