// eval and predict on several ranks, as a user starts them, and how training counts damaged
// samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/text_file.h"
#include "tests/tools/app/two_ranks.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Names;
using test::occurrences;
using test::Program;

struct Ended {
  int code = 0;
  std::string out, err;
};

/// A run that two ranks have trained on 24 images, and datasets to evaluate it on.
class EvalRanksTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ranks_ = new test::TwoRanks();
    Program train(ranks_->command("r", {"--dist.nproc=2", "--training.epochs=1"}));
    ASSERT_EQ(train.wait(), 0) << train.err;
  }
  static void TearDownTestSuite() {
    delete ranks_;
    ranks_ = nullptr;
  }

  static std::string run() { return ranks_->folder("r"); }
  static fs::path data() { return ranks_->folder("r").parent_path().parent_path() / "d.beton"; }
  static Ended precast(std::vector<std::string> command, int ranks,
                       const std::string& failpoint = "") {
    command.insert(command.begin(), test::bin_dir() + "/precast");
    if (ranks > 1) command.push_back("--dist.nproc=" + std::to_string(ranks));
    std::vector<std::string> environment = test::TwoRanks::kEnvironment;
    if (!failpoint.empty()) environment.push_back("PRECAST_FAILPOINTS=" + failpoint);
    Program program(command, environment);
    const int code = program.wait();
    return {code, program.out, program.err};
  }
  static json eval(int ranks, const std::vector<std::string>& more) {
    std::vector<std::string> command = {"eval", run(), "--json"};
    command.insert(command.end(), more.begin(), more.end());
    const Ended ended = precast(command, ranks);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return json::parse(ended.out, nullptr, /*allow_exceptions=*/false);
  }
  /// Runs predict and returns the bytes of its output file.
  std::string predict(int ranks, const std::string& file, const std::vector<std::string>& more,
                      int exit_code = 0) const {
    const fs::path path = folder_ / (std::to_string(ranks) + file);
    std::vector<std::string> command = {"predict", run(), "-o", path};
    command.insert(command.end(), more.begin(), more.end());
    const Ended ended = precast(command, ranks);
    EXPECT_EQ(ended.code, exit_code) << ended.err;
    return test::read_text(path);
  }
  /// Writes a copy of the dataset in which the first `count` JPEGs are overwritten with zeros.
  /// @return the index of the last damaged sample.
  static std::uint64_t damage(const fs::path& path, int count = 1) {
    std::vector<std::byte> bytes = test::read_bytes(data());
    const data::BetonReader reader(data());
    std::uint64_t sample = 0;
    for (int damaged = 0;; ++sample) {
      if (bytes[reader.blob_offset(sample, 0)] != std::byte{0xFF}) continue;
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(reader.blob_offset(sample, 0)),
                  reader.blob_bytes(sample, 0), std::byte{});
      if (++damaged == count) break;
    }
    test::write_bytes(path, bytes);
    return sample;
  }

  static test::TwoRanks* ranks_;
  test::TemporaryFolder folder_;
};
test::TwoRanks* EvalRanksTest::ranks_ = nullptr;

TEST_F(EvalRanksTest, CountsAndMetricsAreThoseOfOneRank) {
  const std::vector<std::string> more = {"--validation.batch_size=5",
                                         "--validation.metrics=[per_class_accuracy,top_k: {k: 3}]"};
  const json one = eval(1, more);
  EXPECT_EQ(one.at("images"), 24);
  for (const int ranks : {2, 3}) {
    json several = eval(ranks, more);
    EXPECT_NEAR(several.at("val_loss"), one.at("val_loss").get<double>(), 1e-5);
    for (const char* key : {"val_loss", "seconds"}) several[key] = one.at(key);
    EXPECT_EQ(several, one) << ranks << " ranks";
  }
}

TEST_F(EvalRanksTest, PredictionsAreThoseOfOneRankByteByByte) {
  for (const std::string file : {".csv", ".npy"}) {
    const std::vector<std::string> more = {"--logits", "--validation.batch_size=5"};
    const std::string one = predict(1, file, more);
    EXPECT_GT(one.size(), 1000U);
    for (const int ranks : {2, 3})
      EXPECT_TRUE(predict(ranks, file, more) == one) << ranks << " ranks, " << file;
  }
}

TEST_F(EvalRanksTest, PhotosArePredictedInOrderAndOtherFilesAreSkippedOnce) {
  test::make_class_tree(folder_ / "tree");
  test::write_bytes(folder_ / "tree/cat/broken.jpg", {});
  const std::vector<std::string> more = {folder_ / "tree", "--top=2", "--validation.batch_size=2"};
  const std::string one = predict(1, ".csv", more, 3);
  EXPECT_GT(occurrences(one, "\n"), 5);
  EXPECT_TRUE(predict(3, ".csv", more, 3) == one);
  const Ended ended = precast({"predict", run(), folder_ / "tree", "--validation.batch_size=2"}, 2);
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(occurrences(ended.err, "broken.jpg"), 1) << ended.err;
  EXPECT_EQ(occurrences(ended.out, "probability"), 1) << "one header";
}

TEST_F(EvalRanksTest, RanksWithoutSamplesTakePart) {
  const std::string two = folder_ / "two.beton";
  ASSERT_EQ(precast({"select", data(), two, "--samples", "0:2"}, 1).code, 0);
  const std::vector<std::string> more = {"--data.val_dataset=" + two,
                                         "--validation.metrics=[per_class_accuracy]"};
  const json one = eval(1, more);
  const json three = eval(3, more);
  EXPECT_EQ(three.at("images"), 2);
  for (const char* key : {"top_1_correct", "top_5_correct", "per_class_accuracy", "classes"})
    EXPECT_EQ(three.at(key), one.at(key)) << key;
  for (const char* batch : {"--validation.batch_size=1", "--validation.batch_size=8"})
    EXPECT_EQ(predict(3, ".csv", {two, batch}), predict(1, ".csv", {two, batch})) << batch;
}

TEST_F(EvalRanksTest, TheBatchesOfTrainingNeedNotSuitTheRanksOfAnEvaluation) {
  Program train(ranks_->command("ghost", {"--training.epochs=1", "--training.global_batch_size=8",
                                          "--methods=[ghost_batch_norm: {size: 8}]"}));
  ASSERT_EQ(train.wait(), 0) << train.err;
  // In training, each of two ranks would have 4 samples, fewer than `size: 8`.
  const Ended ended = precast({"eval", ranks_->folder("ghost")}, 2);
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(EvalRanksTest, MoreRanksThanSamplesInABatchOfTraining) {
  Program train(
      ranks_->command("small", {"--training.epochs=1", "--training.global_batch_size=2"}));
  ASSERT_EQ(train.wait(), 0) << train.err;
  for (const char* command : {"eval", "predict"}) {
    const Ended ended = precast({command, ranks_->folder("small")}, 3);
    EXPECT_EQ(ended.code, 0) << ended.err;
  }
  const Ended asked = precast({"eval", run(), "--training.distributed=1", "--dist.world_size=4",
                               "--training.global_batch_size=2"},
                              /*ranks=*/1);
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_EQ(occurrences(asked.err, "4 ranks"), 1) << asked.err;
}

TEST_F(EvalRanksTest, GraphsOfTrainingDoNotPreventAnEvaluationOnACpu) {
  for (const char* graphs : {"--training.cuda_graphs=on", "--training.cuda_graphs=step"}) {
    for (const char* command : {"eval", "predict"}) {
      const Ended ended = precast({command, run(), graphs}, 1);
      EXPECT_EQ(ended.code, 0) << ended.err;
    }
  }
}

TEST_F(EvalRanksTest, AFailedRankEndsAllRanksWithItsCause) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"eval", run()}, {"predict", run()}}) {
    const Ended killed = precast(command, 2, "evaluator.before_batch=kill@1%1");
    EXPECT_EQ(killed.code, 128 + SIGKILL) << killed.err;
    EXPECT_EQ(occurrences(killed.err, "SIGKILL"), 1) << killed.err;
    EXPECT_EQ(killed.out, "");
    const Ended failed = precast(command, 3, "evaluator.before_batch=error@1%2");
    EXPECT_EQ(failed.code, 5) << failed.err;
    EXPECT_EQ(occurrences(failed.err, "error: "), 1) << failed.err;
    EXPECT_THAT(failed.err, Names("rank 2", "evaluator.before_batch"));
  }
}

TEST_F(EvalRanksTest, ADamagedSampleEndsAllOrIsReplacedAsOnOneRank) {
  const fs::path path = folder_ / "damaged.beton";
  const std::uint64_t sample = damage(path);
  const std::string file = "--data.val_dataset=" + path.string();
  for (const char* command : {"eval", "predict"}) {
    const Ended failed = precast({command, run(), file, "--validation.batch_size=2"}, 2);
    EXPECT_EQ(failed.code, precast({command, run(), file}, 1).code) << failed.err;
    EXPECT_NE(failed.code, 0);
    EXPECT_EQ(occurrences(failed.err, "error: "), 1) << failed.err;
    EXPECT_THAT(failed.err, Names("damaged.beton", "sample " + std::to_string(sample)));
  }
  const std::vector<std::string> replace = {file, "--data.on_corrupt=replace",
                                            "--validation.batch_size=2"};
  EXPECT_EQ(predict(2, ".csv", replace), predict(1, ".csv", replace));
  EXPECT_EQ(eval(2, replace).at("top_1_correct"), eval(1, replace).at("top_1_correct"));
  const std::string replaced =
      std::to_string(sample) + " replaced by " + std::to_string(sample + 1);
  for (const char* command : {"eval", "predict"}) {
    const Ended ended = precast({command, run(), replace[0], replace[1], replace[2]}, 2);
    EXPECT_EQ(occurrences(ended.err, replaced), 1) << ended.err;
  }
}

TEST_F(EvalRanksTest, TrainingCountsTheReplacedSamplesOfAllRanksAndOfBothPartsOfAStoppedRun) {
  constexpr int kDamaged = 4;
  const std::string path = folder_ / "damaged.beton";
  static_cast<void>(damage(path, kDamaged));
  const auto train = [&](const std::string& name, const std::string& ranks,
                         const std::string& resume, const std::string& failpoint) {
    Program program(
        ranks_->command(name, {"--data.train_dataset=" + path, "--data.val_dataset=" + path,
                               "--data.on_corrupt=replace", "--training.epochs=1",
                               "--training.global_batch_size=8", "--validation.batch_size=2",
                               "--dist.nproc=" + ranks, "--checkpoint.resume=" + resume}),
        {test::TwoRanks::kEnvironment[0], "PRECAST_FAILPOINTS=" + failpoint});
    const int code = program.wait();
    EXPECT_EQ(code, failpoint.empty() ? 0 : 85) << program.err;
    if (code != 0) return json();
    return json::parse(ranks_->bytes(name, "summary.json")).at("replaced_samples");
  };
  // Training and evaluation read each sample once.
  EXPECT_EQ(train("one", "1", "never", ""), 2 * kDamaged);
  EXPECT_EQ(train("two", "2", "never", ""), 2 * kDamaged);
  train("cut", "2", "never", "trainer.before_step=term@1%1");
  EXPECT_EQ(train("cut", "2", "auto", ""), 2 * kDamaged);
}

/// On each rank, the same path leads to a different file, as it may on two hosts.
class DifferentHostsTest : public EvalRanksTest {
 protected:
  [[nodiscard]] fs::path host(int rank) const { return folder_ / (rank == 0 ? "a" : "b"); }
  /// Runs `precast COMMAND` on two ranks, each in the folder of its host. @return the standard
  /// error of both.
  [[nodiscard]] std::string refused(const std::string& command) const {
    const int port = test::TwoRanks::free_port();
    const auto in_folder = [&](int rank) -> std::vector<std::string> {
      return {
          "/bin/sh", "-c",
          "cd '" + host(rank).string() + "' && exec " + test::bin_dir() + "/precast " + command};
    };
    Program first(in_folder(0), test::TwoRanks::rank_environment(0, 2, port));
    Program second(in_folder(1), test::TwoRanks::rank_environment(1, 2, port));
    const std::vector<int> codes = {first.wait(), second.wait()};
    EXPECT_THAT(codes, testing::Each(testing::AnyOf(2, 13)));
    std::string err = first.err + second.err;
    EXPECT_EQ(occurrences(err, "error:"), 1) << err;
    return err;
  }
};

TEST_F(DifferentHostsTest, DifferentWeightsAreAnError) {
  Program other(ranks_->command("other", {"--training.epochs=1", "--training.seed=1"}));
  ASSERT_EQ(other.wait(), 0) << other.err;
  for (const int rank : {0, 1}) {
    fs::create_directory(host(rank));
    fs::copy_file(ranks_->folder(rank == 0 ? "r" : "other") / "final_weights.safetensors",
                  host(rank) / "w.safetensors");
  }
  const std::string err = refused("eval '" + run() + "' --model.weights=w.safetensors");
  EXPECT_THAT(err, Names("weights 10.weight", "xxh3"));
  EXPECT_EQ(occurrences(err, "model.weights"), 0) << err;
}

TEST_F(DifferentHostsTest, DifferentPhotosAreAnError) {
  const auto photo = test::jpeg_file(test::gradient(32, 32));
  // First a different number of photos, then different names.
  test::put_file(host(0) / "photos/1.jpg", photo);
  for (const char* name : {"1.jpg", "2.jpg", "3.jpg"})
    test::put_file(host(1) / "photos" / name, photo);
  const std::string command = "predict '" + run() + "' photos --validation.batch_size=1";
  EXPECT_THAT(refused(command), Names("INPUT", 3, "xxh3"));
  for (const char* name : {"1.jpg", "3.jpg"}) fs::remove(host(1) / "photos" / name);
  EXPECT_THAT(refused(command), Names("INPUT", "xxh3"));
}

TEST_F(EvalRanksTest, TheRanksOfARunAreNotThoseOfItsEvaluation) {
  const Ended alone = precast({"eval", run()}, 1);
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.err, testing::Not(testing::HasSubstr("ranks")));
  const Ended asked =
      precast({"eval", run(), "--training.distributed=1", "--dist.world_size=2"}, /*ranks=*/1);
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_EQ(occurrences(asked.err, "2 ranks"), 1) << asked.err;
  EXPECT_EQ(occurrences(asked.out, "top-1"), 1) << "printed only by rank zero: " << asked.out;
}

}  // namespace
}  // namespace precast::tools
