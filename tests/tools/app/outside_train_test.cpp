// Training on batches that another program makes: the settings in a recipe, and what happens if the
// producer's batches do not fit them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/ring/producer.h"
#include "framework/core/file.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/outside/test_message.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"
#include "tests/tools/precast_run.h"
#include "tests/tools/small_network.h"

namespace precast::tools {
namespace {

using nlohmann::json;
using test::Names;
using test::precast_run;
using test::PrecastProgram;
using test::PrecastRun;
using test::TestBatch;

constexpr std::int64_t kSamples = 4, kSidePx = 32, kBatches = 3, kEpochs = 2;

/// Fills a ring, by default without a description. A batch depends only on its position.
class Producer {
 public:
  explicit Producer(std::string name, std::string description = "")
      : name_(std::move(name)),
        description_(std::move(description)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  ~Producer() { ring_.interrupt(); }

  /// The side and the label of the images, and the batches of epoch 0 at which the producer dies or
  /// waits (-1: never).
  std::int64_t side_px = kSidePx, label = 1, dies_at = -1, waits_at = -1;

 private:
  static constexpr std::size_t kPixels = kSamples * kSidePx * kSidePx * 3;

  void run(const std::stop_token& stop) {
    if (!ring_.wait_for_consumers(1)) return;
    const data::RingPosition start = ring_.start();
    for (std::int64_t epoch = start.epoch; epoch < kEpochs; ++epoch) {
      for (std::int64_t b = epoch == start.epoch ? start.batch : 0; b < kBatches; ++b) {
        if (epoch == 0 && b == dies_at) return ring_.fail(DataError("disk 7"));
        while (epoch == 0 && b == waits_at && !stop.stop_requested())
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (!publish(epoch, b)) return;
      }
      if (!ring_.end_pass(epoch, kBatches)) return;
    }
    ring_.finish();
  }

  bool publish(std::int64_t epoch, std::int64_t number) {
    const data::BufferAllocator allocator = ring_.allocator();
    std::byte* const at = allocator.allocate(kPixels + 64);
    const std::shared_ptr<const void> memory(
        at, [release = allocator.release, at](const void*) { release(at); });
    std::memset(at, static_cast<int>(epoch * 100 + number * 10), kPixels);
    const std::int64_t labels[kSamples] = {0, label, 0, label};
    std::memcpy(at + kPixels, labels, sizeof labels);
    data::HostBatch batch;
    batch.fields = {{.name = "image",
                     .type = data::ElementType::u8,
                     .shape = {kSamples, side_px, side_px, 3},
                     .data = at},
                    {.name = "label",
                     .type = data::ElementType::i64,
                     .shape = {kSamples},
                     .data = at + kPixels}};
    batch.sample_ids.resize(kSamples);
    batch.memory = memory;
    return ring_.publish(epoch, number, batch);
  }

  std::string name_, description_;
  data::RingProducer ring_{{.name = name_,
                            .slots = 4,
                            .batch_size = kSamples,
                            .batch_bytes = kPixels + 64,
                            .buffers = 6,
                            .description = description_}};
  std::jthread thread_;
};

class OutsideTrainTest : public ::testing::Test {
 protected:
  OutsideTrainTest() {
    static int count = 0;
    name_ = "outside-train-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1"));
    write_file(folder_ / "r.yaml",
               "data:\n  train_dataset: ring://" + name_ +
                   "\n  val_dataset: " + (folder_ / "d.beton").string() +
                   "\n  batches_per_epoch: 3\nresolution: {min_res: 32, max_res: 32}\n"
                   "training: {batch_size: 4, epochs: 2, device: cpu}\n"
                   "validation: {resolution: 32}\nlr: {lr: 0.01}\n" +
                   test::small_network_line());
  }
  [[nodiscard]] std::vector<std::string> command(const std::string& run,
                                                 std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"train", folder_ / "r.yaml",
                                    "--logging.folder=" + (folder_ / "runs").string(),
                                    "--logging.run_id=" + run};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] PrecastRun train(const std::string& run, std::vector<std::string> more = {}) const {
    return precast_run(command(run, std::move(more)));
  }
  [[nodiscard]] std::vector<std::byte> weights(const std::string& run) const {
    return read_file(folder_ / ("runs/" + run + "/final_weights.safetensors"));
  }
  [[nodiscard]] std::vector<std::byte> expected() const {
    const Producer producer(name_);
    const PrecastRun whole = train("whole");
    EXPECT_EQ(whole.code, 0) << whole.err;
    return weights("whole");
  }

  test::TemporaryFolder folder_;
  std::string name_;
};

TEST_F(OutsideTrainTest, ARunTrainsOnEachBatchOfAnotherProgram) {
  const Producer producer(name_);
  const PrecastRun run = train("a");
  ASSERT_EQ(run.code, 0) << run.err;
  const json params = json::parse(std::ifstream(folder_ / "runs/a/params.json"));
  EXPECT_EQ(params.at("data.train_dataset"), "ring://" + name_);
  const json facts = json::parse(std::ifstream(folder_ / "runs/a/run.json"));
  EXPECT_EQ(facts.at("train_images"), kBatches * kSamples);
  EXPECT_EQ(facts.at("steps_per_epoch"), kBatches);
  const PrecastRun evaluated = precast_run({"eval", (folder_ / "runs/a").string()});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
}

TEST_F(OutsideTrainTest, AProducerThatStartsAtTheRunsBatchMakesAResumeExact) {
  const auto whole = expected();
  {
    const Producer producer(name_);
    PrecastProgram killed(command("resumed", {"--checkpoint.every_steps=2"}),
                          {"PRECAST_FAILPOINTS=trainer.before_step=kill@5"});
    ASSERT_EQ(killed.wait(), 128 + SIGKILL);
  }
  const Producer producer(name_);
  const PrecastRun run =
      train("resumed", {"--checkpoint.every_steps=2", "--checkpoint.resume=auto"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(weights("resumed"), whole);
}

TEST_F(OutsideTrainTest, ASignalDuringAWaitEndsTheRunWithACheckpoint) {
  const auto whole = expected();
  {
    Producer producer(name_);
    producer.waits_at = 2;
    PrecastProgram run(command("stopped", {"--logging.every=1"}));
    const auto steps = [&] {
      return test::occurrences(test::read_text(folder_ / "runs/stopped/log"), "\"epoch_step\"");
    };
    ASSERT_TRUE(test::eventually([&] { return steps() == 2; }));
    ::kill(run.id(), SIGINT);
    EXPECT_EQ(run.wait(), 85) << run.err;
  }
  const Producer producer(name_);
  const PrecastRun resumed = train("stopped", {"--logging.every=1", "--checkpoint.resume=auto"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(weights("stopped"), whole);
}

TEST_F(OutsideTrainTest, BatchesThatDoNotFitAreErrorsOfTheProducer) {
  {
    Producer producer(name_);
    producer.label = 1000;
    const PrecastRun run = train("label");
    EXPECT_EQ(run.code, 10) << run.err;
    EXPECT_THAT(run.err, Names(name_, "label", 1000));
  }
  Producer producer(name_);
  producer.side_px = kSidePx / 2;
  const PrecastRun run = train("size");
  EXPECT_EQ(run.code, 10) << run.err;
  EXPECT_THAT(run.err, Names(name_, "image", 16, 32));
}

TEST_F(OutsideTrainTest, AProducerThatFailsOrStallsEndsTheRun) {
  {
    Producer producer(name_);
    producer.dies_at = 1;
    const PrecastRun run = train("failed");
    EXPECT_EQ(run.code, 3) << run.err;
    EXPECT_THAT(run.err, Names(name_, "disk 7"));
  }
  Producer producer(name_);
  producer.waits_at = 1;
  const PrecastRun run = train("stalled", {"--data.producer_timeout_s=2"});
  EXPECT_EQ(run.code, 14) << run.err;
  EXPECT_THAT(run.err, Names(name_, 2, "data.producer_timeout_s"));
}

TEST_F(OutsideTrainTest, KeysThatDoNotFitAreNamed) {
  const std::string zmq = "--data.train_dataset=zmq://127.0.0.1:9";
  const auto expect = [&](std::vector<std::string> more, const std::string& key) {
    more.insert(more.begin(), zmq);
    const PrecastRun run = train("x", std::move(more));
    EXPECT_EQ(run.code, 2) << run.err;
    EXPECT_THAT(run.err, Names(key));
  };
  expect({"--data.batches_per_epoch=0"}, "data.batches_per_epoch");
  expect({"--data.order=sequential"}, "data.order");
  expect({"--data.subset=5"}, "data.subset");
  expect({"--pipeline.train=[horizontal_flip]"}, "pipeline.train");
  expect({"--data.producer_timeout_s=1800"}, "data.producer_timeout_s");
  expect({"--data.producer_timeout_s=1800"}, "training.stall_timeout_s");
  expect({"--training.stall_timeout_s=300"}, "training.stall_timeout_s");
  expect({"--training.stall_timeout_s=300"}, "data.producer_timeout_s");
  expect({"--training.on_nonfinite=restore"}, "training.on_nonfinite");
  expect({"--ring=x"}, "data.train_dataset");
  expect({"--data.train_dataset=zmq://127.0.0.1"}, "data.train_dataset");
  expect({"--data.train_dataset=[zmq://127.0.0.1:9, a.beton]"}, "data.train_dataset");
  const PrecastRun file = train("x", {"--data.train_dataset=" + (folder_ / "d.beton").string()});
  EXPECT_EQ(file.code, 2);
  EXPECT_THAT(file.err, Names("data.batches_per_epoch"));
  EXPECT_EQ(precast_run({"serve", folder_ / "r.yaml", "--as", name_, zmq}).code, 2);
}

TEST_F(OutsideTrainTest, ARunHasOneRankAndADryRunSaysSo) {
  const std::string zmq = "--data.train_dataset=zmq://127.0.0.1:9";
  const std::pair<std::vector<std::string>, std::string> asks[] = {
      {{"--dist.nproc=2"}, "dist.nproc"},
      {{"--training.distributed=1", "--dist.world_size=2"}, "training.distributed"}};
  for (const auto& [options, key] : asks) {
    std::vector<std::string> more = options;
    more.push_back(zmq);
    const PrecastRun run = train("x", more);
    EXPECT_EQ(run.code, 2) << run.err;
    EXPECT_THAT(run.err, Names(key, "zmq://127.0.0.1:9", 2));
    more.emplace_back("--dry-run");
    const PrecastRun dry = train("x", more);
    EXPECT_EQ(dry.code, 2) << dry.out;
    EXPECT_EQ(dry.err, run.err);
  }
  // One process is started, whatever dist.world_size says.
  EXPECT_EQ(train("x", {zmq, "--training.distributed=1", "--dist.world_size=2", "--dist.nproc=1",
                        "--dry-run"})
                .code,
            0);
}

TEST_F(OutsideTrainTest, AWaitMayBeAsLongAsTheWatchdogAllows) {
  EXPECT_EQ(train("x", {"--data.train_dataset=zmq://127.0.0.1:9", "--data.producer_timeout_s=1799",
                        "--dry-run"})
                .code,
            0);
  // Without a producer, data.producer_timeout_s is not checked.
  EXPECT_EQ(train("x", {"--data.train_dataset=" + (folder_ / "d.beton").string(),
                        "--data.batches_per_epoch=0", "--training.stall_timeout_s=300",
                        "--warn-unread", "--dry-run"})
                .code,
            0);
}

TEST_F(OutsideTrainTest, CommandsThatLoadFilesNameTheAddress) {
  const std::string address = "zmq://127.0.0.1:9";
  for (const char* command : {"loader", "stages"}) {
    const PrecastRun run =
        precast_run({"bench", command, folder_ / "r.yaml", "--data.train_dataset=" + address});
    EXPECT_EQ(run.code, 2) << run.err;
    EXPECT_THAT(run.err, Names("data.train_dataset", address));
  }
  const PrecastRun val = precast_run({"bench", "loader", folder_ / "r.yaml", "--val", "--seconds",
                                      "0.1", "--runs", "1", "--data.train_dataset=" + address});
  EXPECT_EQ(val.code, 0) << val.err;
}

TEST_F(OutsideTrainTest, ADescriptionIsAnObjectThatMayNameNoDatasets) {
  for (const char* description :
       {"frames of camera 7", "[]", R"({"datasets": 7})", R"({"datasets": [7]})"}) {
    const Producer producer(name_, description);
    const PrecastRun run = train("x");
    EXPECT_EQ(run.code, 2) << description;
    EXPECT_THAT(run.err, Names("data.train_dataset", "ring://" + name_));
  }
  const auto without_batches = [&](const std::string& description) {
    const Producer producer(name_, description);
    return train("x", {"--data.batches_per_epoch=0", "--dry-run"});
  };
  const PrecastRun described = without_batches(R"({"camera": 7})");
  EXPECT_EQ(described.code, 2) << described.err;
  EXPECT_THAT(described.err, Names("data.batches_per_epoch", "datasets"));
  const PrecastRun plain = without_batches("");
  EXPECT_EQ(plain.code, 2) << plain.err;
  EXPECT_THAT(plain.err, Names("data.batches_per_epoch"));
  EXPECT_THAT(plain.err, ::testing::Not(Names("datasets")));
}

TEST_F(OutsideTrainTest, MeasurementsOfStepsTakeItsBatches) {
  const Producer producer(name_);
  const PrecastRun run =
      precast_run({"bench", "step", "--model", "resnet18", "--image-size", "32", "--batch-size",
                   "4", "--device", "cpu", "--data", "ring://" + name_, "--warmup", "1", "--steps",
                   "2", "--runs", "2", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out).at("settings").at("data"), "ring://" + name_);
}

TEST_F(OutsideTrainTest, ADryRunShowsTheProducer) {
  const std::string address = "zmq://127.0.0.1:9?bind&hwm=2";
  const PrecastRun run = train("x", {"--data.train_dataset=" + address, "--dry-run", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const json plan = json::parse(run.out);
  EXPECT_EQ(plan.at("producer"), address);
  EXPECT_EQ(plan.at("steps_per_epoch"), kBatches);
  const PrecastRun text = train("x", {"--data.train_dataset=" + address, "--dry-run"});
  EXPECT_THAT(text.out, ::testing::HasSubstr(address));
}

}  // namespace
}  // namespace precast::tools
