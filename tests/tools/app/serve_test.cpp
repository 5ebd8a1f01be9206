// Runs that train on a ring end with the same weights as runs without it, whatever happens to the
// ring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "data/ring/consumer.h"
#include "framework/core/file.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"
#include "tests/tools/small_network.h"

namespace precast::tools {
namespace {

using nlohmann::json;
using test::Names;
using test::precast_run;
using test::PrecastProgram;
using test::PrecastRun;
using ::testing::AllOf;

constexpr std::int64_t kSteps = 12, kBatch = 4, kEpochs = 2;

class ServeTest : public ::testing::Test {
 protected:
  ServeTest() {
    test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1"));
    write_file(recipe(), "data:\n  train_dataset: " + file() + "\n  val_dataset: " + file() +
                             "\n  repeats: 2\n  num_workers: 2\nresolution:\n  min_res: 32\n"
                             "  max_res: 48\n  end_ramp: 1\ntraining:\n  batch_size: 4\n"
                             "  epochs: 2\n  device: cpu\nvalidation: {resolution: 32}\n"
                             "lr: {lr: 0.01}\n" +
                             test::small_network_line());
  }
  [[nodiscard]] std::string file() const { return folder_ / "d.beton"; }
  [[nodiscard]] std::string recipe() const { return folder_ / "r.yaml"; }

  static std::string fresh_name() {
    static int count = 0;
    return "serve-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  }
  [[nodiscard]] std::vector<std::string> serve_command(const std::string& name, int consumers,
                                                       std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {
        "serve", recipe(), "--as", name, "--consumers", std::to_string(consumers), "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Starts a server and waits until it is ready for consumers.
  [[nodiscard]] std::unique_ptr<PrecastProgram> serve(const std::string& name, int consumers,
                                                      std::vector<std::string> more = {}) const {
    auto program =
        std::make_unique<PrecastProgram>(serve_command(name, consumers, std::move(more)));
    EXPECT_TRUE(program->printed("ring://" + name));
    return program;
  }
  [[nodiscard]] std::vector<std::string> train_command(const std::string& run,
                                                       std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"train", recipe(),
                                    "--logging.folder=" + (folder_ / "runs").string(),
                                    "--logging.run_id=" + run};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] static std::string on(const std::string& name) {
    return "--data.train_dataset=ring://" + name;
  }
  [[nodiscard]] std::vector<std::byte> weights(const std::string& run) const {
    return read_file(folder_ / ("runs/" + run + "/final_weights.safetensors"));
  }
  /// The weights of a run without a ring.
  [[nodiscard]] std::vector<std::byte> expected(const std::string& run,
                                                const std::vector<std::string>& more = {}) const {
    static std::map<std::vector<std::string>, std::vector<std::byte>> known;
    if (const auto found = known.find(more); found != known.end()) return found->second;
    const PrecastRun alone = precast_run(train_command(run, more));
    EXPECT_EQ(alone.code, 0) << alone.err;
    return known[more] = weights(run);
  }

  test::TemporaryFolder folder_;
};

json last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string line, last;
  while (std::getline(lines, line)) last = line;
  return json::parse(last);
}

TEST_F(ServeTest, TwoTrainingRunsOnOneRingLearnWhatTheyLearnAlone) {
  const std::vector<std::string> other = {"--lr.lr=0.02", "--training.weight_decay=0.001"};
  const auto first = expected("a");
  const auto second = expected("b", other);
  ASSERT_NE(first, second);
  const std::string name = fresh_name();
  const auto server = serve(name, 2);
  PrecastProgram a(train_command("ring_a", {on(name)}));
  std::vector<std::string> with_ring = other;
  with_ring.push_back(on(name));
  PrecastProgram b(train_command("ring_b", with_ring));
  EXPECT_EQ(a.wait(), 0) << a.err;
  EXPECT_EQ(b.wait(), 0) << b.err;
  EXPECT_EQ(server->wait(), 0) << server->err;
  EXPECT_EQ(weights("ring_a"), first);
  EXPECT_EQ(weights("ring_b"), second);
  const json end = last_line(server->out);
  EXPECT_EQ(end.at("event"), "end");
  EXPECT_EQ(end.at("samples_decoded"), kEpochs * kSteps * kBatch);
  EXPECT_EQ(end.at("samples_delivered"), 2 * kEpochs * kSteps * kBatch);
  EXPECT_EQ(end.at("replaced_samples"), 0);
  EXPECT_EQ(test::occurrences(server->out, "\"event\":\"pass\""), kEpochs);
  // The run records the dataset's file, so that it can be repeated without the ring.
  const json params = json::parse(std::ifstream(folder_ / "runs/ring_a/params.json"));
  EXPECT_EQ(params.at("data.train_dataset"), file());
}

TEST_F(ServeTest, ARunThatResumesAtABatchThatTheRingHasPassedHasEqualWeights) {
  const auto whole = expected("whole");
  PrecastProgram killed(train_command("resumed", {"--checkpoint.every_steps=4"}),
                        {"PRECAST_FAILPOINTS=trainer.before_step=kill@11"});
  ASSERT_EQ(killed.wait(), 128 + SIGKILL);
  const std::string name = fresh_name();
  const auto server = serve(name, 1);
  // This consumer holds the ring at batch 10.
  std::optional<data::RingConsumer> other(
      std::in_place, name,
      data::RingJoin{.mode = data::RingJoin::Mode::position, .position = {0, 0}});
  ASSERT_TRUE(other->begin_pass());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(other->next());
  PrecastProgram resumed(train_command(
      "resumed", {on(name), "--checkpoint.every_steps=4", "--checkpoint.resume=auto"}));
  // The run catches up with the ring: it loads batches 8 and 9 itself and takes all others from the
  // ring.
  ASSERT_TRUE(resumed.printed("loads its batches itself"));
  ASSERT_TRUE(resumed.printed("batches come from ring"));
  other.reset();
  EXPECT_EQ(resumed.wait(), 0) << resumed.err;
  EXPECT_EQ(server->wait(), 0) << server->err;
  EXPECT_EQ(weights("resumed"), whole);
  EXPECT_GE(last_line(server->out).at("samples_delivered"), (10 + kSteps) * kBatch);
}

TEST_F(ServeTest, ARingStartsWhereItsEarliestConsumerResumes) {
  const auto whole = expected("whole");
  for (const char* run : {"a", "b"}) {
    PrecastProgram killed(train_command(run, {"--checkpoint.every_steps=4"}),
                          {std::string("PRECAST_FAILPOINTS=trainer.before_step=kill@") +
                           (*run == 'a' ? "11" : "19")});
    ASSERT_EQ(killed.wait(), 128 + SIGKILL);
  }
  const std::string name = fresh_name();
  const auto server = serve(name, 2);
  const auto resume = [&](const char* run) {
    return PrecastProgram(
        train_command(run, {on(name), "--checkpoint.every_steps=4", "--checkpoint.resume=auto"}));
  };
  PrecastProgram a = resume("a");
  PrecastProgram b = resume("b");
  EXPECT_EQ(a.wait(), 0) << a.err;
  EXPECT_EQ(b.wait(), 0) << b.err;
  EXPECT_EQ(server->wait(), 0) << server->err;
  EXPECT_EQ(weights("a"), whole);
  EXPECT_EQ(weights("b"), whole);
  // Neither run begins at the first batch, and neither loads a batch itself.
  const json end = last_line(server->out);
  EXPECT_LT(end.at("samples_decoded"), kEpochs * kSteps * kBatch);
  EXPECT_GE(end.at("samples_decoded"), 16 * kBatch);
  EXPECT_GE(end.at("samples_delivered"), end.at("samples_decoded").get<int>() + 8 * kBatch);
  EXPECT_EQ(test::occurrences(a.err + b.err, "itself"), 0);
}

class ServeEndsTest : public ServeTest, public ::testing::WithParamInterface<int> {};

TEST_P(ServeEndsTest, TrainingRunsContinueWithEqualWeights) {
  const auto whole = expected("whole");
  const std::string name = fresh_name();
  const auto server = serve(name, 1);
  // The failpoint suspends the run, so that the server ends in the middle of a pass.
  PrecastProgram run(train_command("r", {on(name), "--checkpoint.every_steps=4"}),
                     {"PRECAST_FAILPOINTS=trainer.before_step=stop@7"});
  ASSERT_TRUE(run.printed("batches come from ring"));
  ASSERT_TRUE(test::eventually([&] {
    std::string state;
    std::ifstream("/proc/" + std::to_string(run.id()) + "/stat") >> state >> state >> state;
    return state == "T";
  }));
  ::kill(server->id(), GetParam());
  EXPECT_EQ(server->wait(), 128 + GetParam());
  ::kill(run.id(), SIGCONT);
  EXPECT_EQ(run.wait(), 0) << run.err;
  EXPECT_EQ(weights("r"), whole);
  EXPECT_EQ(test::occurrences(run.err, "warning: ring"), 1) << run.err;
}

INSTANTIATE_TEST_SUITE_P(Signals, ServeEndsTest, ::testing::Values(SIGKILL, SIGTERM, SIGINT));

TEST_F(ServeTest, EveryKeyThatChangesBatchesMustBeThatOfTheRing) {
  const std::string name = fresh_name();
  const auto server = serve(name, 1);
  const PrecastRun run = precast_run(train_command(
      "r", {on(name), "--data.order=sequential", "--training.seed=7", "--resolution.max_res=64"}));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, Names("data.order", "random", "sequential"));
  EXPECT_THAT(run.err, Names("training.seed", 0, 7));
  EXPECT_THAT(run.err, Names("resolution", 48, 64, 2));
  write_file(folder_ / "other.yaml", "data:\n  train_dataset: ring://" + name +
                                         "\n  val_dataset: " + file() +
                                         "\n  repeats: 3\ntraining: {batch_size: 8, epochs: 3, "
                                         "device: cpu}\nresolution: {min_res: 32, max_res: 48, "
                                         "end_ramp: 1}\nvalidation: {resolution: 32}\n");
  const PrecastRun other = precast_run({"train", (folder_ / "other.yaml").string()});
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(precast_run({"train", (folder_ / "other.yaml").string(), "--dry-run"}).code, 2);
  EXPECT_THAT(other.err, AllOf(Names("other.yaml:4:12", "data.repeats", 2, 3),
                               Names("other.yaml:5", "training.batch_size", 4, 8),
                               Names("training.epochs", 2, 3)));
  // Keys that do not change batches may differ.
  const PrecastRun same = precast_run(
      train_command("same", {on(name), "--data.num_workers=1", "--data.batches_ahead=1"}));
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(server->wait(), 0) << server->err;
}

TEST_F(ServeTest, TheOptionRingChangesNoResult) {
  const auto whole = expected("whole");
  const std::string name = fresh_name();
  // First the ring does not exist, then it has other settings, then it matches the run.
  EXPECT_EQ(precast_run(train_command("none", {"--ring", name})).code, 0);
  EXPECT_EQ(weights("none"), whole);
  {
    const auto server = serve(name, 1, {"--training.seed=3"});
    const PrecastRun run = precast_run(train_command("other", {"--ring", name}));
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.err, Names(name, "training.seed", 3, 0));
    EXPECT_EQ(weights("other"), whole);
    ::kill(server->id(), SIGTERM);
    EXPECT_EQ(server->wait(), 128 + SIGTERM);
  }
  const auto server = serve(name, 1);
  const PrecastRun run = precast_run(train_command("fits", {"--ring", name}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(weights("fits"), whole);
  EXPECT_EQ(server->wait(), 0);
  EXPECT_EQ(last_line(server->out).at("samples_delivered"), kEpochs * kSteps * kBatch);
}

TEST_F(ServeTest, StartsAfterTheMaximumWaitIfConsumersAreMissing) {
  const std::string name = fresh_name();
  const auto server = serve(name, 4, {"--wait-s", "1"});
  const PrecastRun run = precast_run(train_command("r", {on(name)}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(server->wait(), 0) << server->err;
}

TEST_F(ServeTest, ADatasetIsServedWithTheKeysGiven) {
  const std::string name = fresh_name();
  PrecastProgram server({"serve", file(), "--as", name, "--training.batch_size=8",
                         "--training.epochs=1", "--training.device=cpu"});
  ASSERT_TRUE(server.printed("ring://" + name));
  data::RingConsumer consumer(name, {});
  ASSERT_TRUE(consumer.begin_pass());
  const auto batch = consumer.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->sample_ids.size(), 8U);
  EXPECT_EQ(json::parse(consumer.description()).at("datasets"), json::array({file()}));
  ::kill(server.id(), SIGINT);
  EXPECT_EQ(server.wait(), 128 + SIGINT);
}

TEST_F(ServeTest, WrongInputIsAnErrorWithItsExitCode) {
  const std::string name = fresh_name();
  EXPECT_EQ(precast_run({"serve", recipe()}).code, 2) << "no name";
  EXPECT_EQ(precast_run(serve_command("a/b", 1)).code, 2);
  EXPECT_EQ(precast_run(serve_command(name, 65)).code, 2);
  EXPECT_EQ(precast_run(serve_command(name, 1, {"--slots", "2"})).code, 2);
  EXPECT_EQ(precast_run(serve_command(name, 1, {"--data.train_dataset=none.beton"})).code, 5);
  const PrecastRun large = precast_run(serve_command(name, 1, {"--training.batch_size=97"}));
  EXPECT_EQ(large.code, 2);
  EXPECT_THAT(large.err, Names("training.batch_size", 97));
  const PrecastRun no_epochs = precast_run(serve_command(name, 1, {"--training.epochs=0"}));
  EXPECT_EQ(no_epochs.code, 2);
  EXPECT_THAT(no_epochs.err,
              AllOf(Names("training.epochs", 0), ::testing::Not(Names("training.batch_size"))));
  const PrecastRun nobody = precast_run(train_command("r", {on(name)}));
  EXPECT_EQ(nobody.code, 5);
  EXPECT_THAT(nobody.err, Names("data.train_dataset", name));
  const auto server = serve(name, 1);
  const PrecastRun taken = precast_run(serve_command(name, 1));
  EXPECT_EQ(taken.code, 5);
  EXPECT_THAT(taken.err, Names(name));
  const PrecastRun both =
      precast_run(train_command("r", {"--data.train_dataset=[ring://" + name + ", a.beton]"}));
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, Names("data.train_dataset"));
  EXPECT_EQ(precast_run(serve_command(fresh_name(), 1, {on(name)})).code, 2);
  ::kill(server->id(), SIGTERM);
  EXPECT_EQ(server->wait(), 128 + SIGTERM) << "a signal ends the wait for consumers";
}

}  // namespace
}  // namespace precast::tools
