// Training, process groups and heartbeats of several ranks on this machine, over Gloo.
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "framework/core/error.h"
#include "framework/distributed/grad_sync.h"
#include "framework/distributed/heartbeat.h"
#include "framework/distributed/peer_watch.h"
#include "framework/distributed/process_group.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::distributed {
namespace {

using test::Names;
using test::Program;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

struct Result {
  nlohmann::json values;
  std::vector<double> weights;

  [[nodiscard]] const nlohmann::json& at(const char* key) const { return values.at(key); }
  bool operator==(const Result&) const = default;
};

/// Reads what a rank wrote. Weights are stored in binary: writing and reading millions of numbers
/// as text would take longer than training.
Result read_result(const std::string& path) {
  std::ifstream values(path), weights(path + ".weights", std::ios::binary | std::ios::ate);
  Result result{nlohmann::json::parse(values), {}};
  result.weights.resize(static_cast<std::size_t>(weights.tellg()) / sizeof(double));
  weights.seekg(0);
  weights.read(reinterpret_cast<char*>(result.weights.data()),
               static_cast<std::streamsize>(result.weights.size() * sizeof(double)));
  if (!weights || result.weights.empty()) throw std::runtime_error(path + ".weights");
  return result;
}

/// Trains on `world` ranks and returns the result of each rank.
std::vector<Result> train(int world, const std::vector<std::string>& options) {
  const TemporaryFolder folder;
  const StoreHost store("127.0.0.1");
  std::vector<std::unique_ptr<Program>> ranks;
  for (int rank = 0; rank < world; ++rank) {
    std::vector<std::string> args = {RANK_PROGRAM, std::to_string(rank), std::to_string(world),
                                     std::to_string(store.port()), folder / "out"};
    args.insert(args.end(), options.begin(), options.end());
    ranks.push_back(std::make_unique<Program>(args));
  }
  std::vector<Result> results;
  for (int rank = 0; rank < world; ++rank) {
    if (ranks[static_cast<std::size_t>(rank)]->wait() != 0)
      throw std::runtime_error(ranks[static_cast<std::size_t>(rank)]->err);
    results.push_back(read_result(folder / ("out." + std::to_string(rank))));
  }
  return results;
}

std::vector<double> numbers(const Result& result, const char* key) {
  return result.at(key).get<std::vector<double>>();
}

/// The largest |a - b| / max(|a|, floor).
double largest_difference(const std::vector<double>& a, const std::vector<double>& b,
                          double floor = 1e-300) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::max(std::abs(a[i]), floor));
  return largest;
}

TEST(DistributedTrainingTest, OneTwoAndFourRanksHaveTheSameLosses) {
  const auto one = numbers(train(1, {})[0], "losses");
  ASSERT_EQ(one.size(), 100U);
  EXPECT_GT(one.front() - one.back(), 1e-3) << "training must reduce the loss";
  for (const int world : {2, 4})
    EXPECT_LT(largest_difference(one, numbers(train(world, {})[0], "losses")), 1e-9) << world;
}

TEST(DistributedTrainingTest, OneRankInAGroupTrainsAsWithoutAGroup) {
  const auto alone = train(1, {"steps=20"})[0];
  for (const char* mode : {"update=replicated", "zero=1"}) {
    EXPECT_EQ(alone, train(1, {"group=1", "steps=20", mode})[0]) << mode;
  }
}

TEST(DistributedTrainingTest, AllUpdateModesGiveTheSameResult) {
  const auto one = train(1, {"steps=20"})[0];
  for (const std::vector<std::string>& mode : {std::vector<std::string>{"update=after_backward"},
                                               {"update=parameter_server"},
                                               {"zero=1"},
                                               {"zero=1", "update=after_backward"},
                                               {"micro_batches=2"}}) {
    std::vector<std::string> options = mode;
    options.emplace_back("steps=20");
    const auto two = train(2, options);
    EXPECT_LT(largest_difference(numbers(one, "losses"), numbers(two[0], "losses")), 1e-9)
        << mode[0];
    EXPECT_EQ(two[0].weights, two[1].weights) << mode[0];
  }
}

TEST(DistributedTrainingTest, CompressedGradientsAreCloseAndTheRanksStayEqual) {
  const auto one = train(1, {"steps=20"})[0];
  for (const auto& [compression, tolerance] : {std::pair{"fp16", 2e-3}, {"bf16", 2e-2}}) {
    for (const char* update : {"update=replicated", "update=after_backward"}) {
      const auto two = train(2, {"steps=20", std::string("compression=") + compression, update});
      const double difference =
          largest_difference(numbers(one, "losses"), numbers(two[0], "losses"));
      EXPECT_LT(difference, tolerance) << compression << update;
      EXPECT_GT(difference, 1e-9) << compression << update;
      EXPECT_EQ(two[0].weights, two[1].weights);
    }
  }
}

/// The tests of this suite train with methods, on several ranks and with micro-batches. SAM climbs
/// along each rank's own gradient, as published. With `twins=1`, all ranks get the same samples, so
/// they must act like one rank.
TEST(DistributedMethodsTest, SamClimbsWithoutFrozenLayersHoweverManyRanksThereAre) {
  const std::string methods = "methods=sam:{rho: 0.5};layer_freezing:{freeze_start: 0}";
  const auto one = train(1, {"epochs=4", "steps=3", "batch=4", methods})[0];
  const auto plain = train(1, {"epochs=4", "steps=3", "batch=4", "methods=sam:{rho: 0.5}"})[0];
  EXPECT_GT(largest_difference(numbers(one, "losses"), numbers(plain, "losses")), 1e-6);
  for (const char* update : {"update=replicated", "update=after_backward"}) {
    const auto two = train(2, {"epochs=4", "steps=3", "batch=8", "twins=1", update, methods});
    EXPECT_LT(largest_difference(numbers(one, "losses"), numbers(two[0], "losses")), 1e-9)
        << update;
    EXPECT_EQ(two[0].weights, two[1].weights) << update;
  }
}

TEST(DistributedMethodsTest, ClippingCountsNoFrozenLayersInEitherOrder) {
  const std::string freezing = "layer_freezing:{freeze_start: 0}";
  const std::string clipping = "gradient_clipping:{max_norm: 0.01}";
  const auto one = train(1, {"epochs=4", "steps=3", "methods=" + freezing + ";" + clipping})[0];
  for (const std::string& methods : {freezing + ";" + clipping, clipping + ";" + freezing}) {
    for (const int world : {1, 2}) {
      const auto other = train(world, {"epochs=4", "steps=3", "methods=" + methods})[0];
      EXPECT_LT(largest_difference(one.weights, other.weights, 1), 1e-9) << world << methods;
    }
  }
}

TEST(DistributedMethodsTest, SamIsTheSameInMicroBatchesAndInEveryWayOfUpdating) {
  const std::string methods = "methods=sam:{rho: 0.5, interval: 2}";
  const auto single_rank = train(1, {"steps=10", methods})[0];
  const auto parts = train(1, {"steps=10", "micro_batches=4", methods})[0];
  EXPECT_LT(largest_difference(numbers(single_rank, "losses"), numbers(parts, "losses")), 1e-9);
  const auto two = train(2, {"steps=10", methods})[0];
  for (const char* mode :
       {"update=after_backward", "update=parameter_server", "zero=1", "micro_batches=2"}) {
    const auto other = train(2, {"steps=10", mode, methods});
    EXPECT_LT(largest_difference(numbers(two, "losses"), numbers(other[0], "losses")), 1e-9)
        << mode;
    EXPECT_EQ(other[0].weights, other[1].weights) << mode;
  }
}

TEST(DistributedMethodsTest, ResizedBatchesAreThoseOfOneRank) {
  const std::string methods = "methods=batch_resize:{delay_fraction: 0.2, size_increment: 2}";
  const auto one = train(1, {"steps=10", methods})[0];
  EXPECT_LT(largest_difference(numbers(one, "losses"),
                               numbers(train(2, {"steps=10", methods})[0], "losses")),
            1e-9);
  EXPECT_LT(
      largest_difference(numbers(one, "losses"),
                         numbers(train(1, {"steps=10", "micro_batches=2", methods})[0], "losses")),
      1e-9);
}

/// Each rank selects its own samples at random, just as it draws its own mixing weights for MixUp.
TEST(DistributedMethodsTest, RanksThatSelectForThemselvesStayOneModel) {
  const std::string methods = "methods=selective_backprop:{start: 0, end: 1, interrupt: 3}";
  const auto two = train(2, {"steps=10", methods});
  EXPECT_EQ(two[0].weights, two[1].weights);
  for (const char* mode : {"update=after_backward", "zero=1"}) {
    EXPECT_LT(largest_difference(numbers(two[0], "losses"),
                                 numbers(train(2, {"steps=10", mode, methods})[0], "losses")),
              1e-9)
        << mode;
  }
  EXPECT_GT(
      largest_difference(numbers(two[0], "losses"), numbers(train(2, {"steps=10"})[0], "losses")),
      1e-3);
}

TEST(DistributedTrainingTest, TheSameLaunchAgainIsEqualToTheLastBit) {
  const auto first = train(4, {"steps=20"});
  EXPECT_EQ(first, train(4, {"steps=20"}));
}

/// At the published rates, the training of a ResNet is chaotic: rounding alone changes the losses
/// of 20 steps by 10 %. At this rate, it changes them by less than 0.1 % on any CPU.
constexpr const char* kSmallLr = "lr=3e-4";

TEST(DistributedTrainingTest, TwoRanksOfResNetAreTwoHalfBatchesOfOneProcess) {
  const std::vector<std::string> resnet = {"model=resnet18", "batch=16", "size_px=32",
                                           "bucket_bytes=4000000", kSmallLr};
  const auto run = [&](int world, std::vector<std::string> more) {
    more.insert(more.end(), resnet.begin(), resnet.end());
    return train(world, more)[0];
  };
  const auto halves = [&](const char* steps) {
    return run(1, {"micro_batches=2", "halves=1", steps});
  };
  EXPECT_LT(largest_difference(halves("steps=1").weights, run(2, {"steps=1"}).weights, 1), 1e-5);
  EXPECT_LT(largest_difference(numbers(halves("steps=20"), "losses"),
                               numbers(run(2, {"steps=20"}), "losses")),
            1e-3);
}

TEST(DistributedTrainingTest, WithSharedBatchStatisticsTwoRanksAreOneProcess) {
  const std::vector<std::string> resnet = {
      "model=resnet18", "batch=16", "size_px=32", "steps=5", "bucket_bytes=4000000", kSmallLr};
  auto two_ranks = resnet;
  two_ranks.emplace_back("sync_bn=1");
  const auto one = train(1, resnet)[0];
  const auto two = train(2, two_ranks)[0];
  const auto a = numbers(one, "losses"), b = numbers(two, "losses");
  EXPECT_NEAR(a[0], b[0], 1e-5);
  EXPECT_LT(largest_difference(a, b), 1e-3);
  EXPECT_LT(largest_difference(one.weights, two.weights, 1), 1e-3);
  // Without sync_bn, the statistics of each half lead to a different step.
  EXPECT_GT(std::abs(numbers(train(2, resnet)[0], "losses")[0] - a[0]), 1e-4);
}

TEST(DistributedTrainingTest, EverySampleIsEvaluatedOnceHoweverManyThereAre) {
  const std::vector<std::string> options = {"steps=1", "also_evaluate=0,1,3,4,9"};
  const nlohmann::json one = train(1, options)[0].at("evaluations");
  for (const Result& rank : train(4, options)) {
    const nlohmann::json& four = rank.at("evaluations");
    ASSERT_EQ(four.size(), 6U);
    for (std::size_t i = 0; i < four.size(); ++i) {
      const int samples[] = {7, 0, 1, 3, 4, 9};
      EXPECT_EQ(four[i].at("samples"), samples[i]);
      EXPECT_EQ(four[i].at("top_1_correct"), one[i].at("top_1_correct")) << samples[i];
      EXPECT_NEAR(four[i].at("val_loss").get<double>(), one[i].at("val_loss").get<double>(), 1e-9)
          << samples[i];
    }
  }
}

TEST(ShardParametersTest, SpreadsElementsEvenlyAndTheSameWayEverywhere) {
  std::vector<NamedTensor> parameters;
  for (const std::int64_t size : {10, 1, 7, 3, 3})
    parameters.push_back({std::to_string(size), at::zeros({size})});
  EXPECT_EQ(shard_parameters(parameters, 2), (std::vector<int>{0, 1, 1, 1, 0}));
  EXPECT_EQ(shard_parameters(parameters, 1), (std::vector<int>{0, 0, 0, 0, 0}));
}

TEST(ProcessGroupTest, NcclWithoutAGpuSaysSo) {
  const StoreHost store("127.0.0.1");
  try {
    const ProcessGroup group({.port = store.port(), .device = at::Device(at::kCUDA, 0)});
    GTEST_SKIP() << "there is a GPU";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), Names("NCCL"));
  }
}

TEST(ProcessGroupTest, AMissingStoreIsNamedWithItsPlace) {
  const GroupOptions options{
      .rank = 1, .world = 2, .port = 9, .join_timeout = std::chrono::seconds(1)};
  EXPECT_THAT([&] { const ProcessGroup group(options); },
              testing::ThrowsMessage<DeviceError>(Names("127.0.0.1:9")));
}

/// Opens the key-value store that the ranks of a group share.
c10::intrusive_ptr<c10d::Store> keys_of(int port, const std::string& prefix = "") {
  c10d::TCPStoreOptions client;
  client.port = static_cast<std::uint16_t>(port);
  client.waitWorkers = false;
  return c10::make_intrusive<c10d::PrefixStore>(
      prefix, c10::make_intrusive<c10d::TCPStore>("127.0.0.1", client));
}

/// Joins a group of three ranks. @return the exit code of the error; `done` if the group is
/// complete.
ExitCode join_group(int rank, int port, const std::atomic<bool>* stop) {
  try {
    const ProcessGroup group({.rank = rank,
                              .world = 3,
                              .port = port,
                              .join_timeout = std::chrono::seconds(60),
                              .stop = stop});
  } catch (const Error& error) {
    return error.exit_code();
  }
  return ExitCode::done;
}

TEST(ProcessGroupTest, ARankThatIsAskedToStopLeavesWithTheOthers) {
  const StoreHost store("127.0.0.1");
  const std::atomic<bool> stop_requested = true;
  auto waiting_rank = std::async(std::launch::async, join_group, 0, store.port(), nullptr);
  EXPECT_EQ(join_group(1, store.port(), &stop_requested), ExitCode::preempted);
  EXPECT_EQ(waiting_rank.get(), ExitCode::preempted);
  EXPECT_EQ(join_group(2, store.port(), nullptr), ExitCode::preempted)
      << "a rank that joins after the stop";
}

TEST(ProcessGroupTest, ARankIsAskedToStopWhileItWaits) {
  const StoreHost store("127.0.0.1");
  std::atomic<bool> stop_requested = false;
  auto waiting_rank = std::async(std::launch::async, join_group, 0, store.port(), &stop_requested);
  const auto keys = keys_of(store.port());
  EXPECT_TRUE(test::eventually([&] { return keys->add("here", 0) == 1; }));
  stop_requested = true;
  EXPECT_EQ(waiting_rank.get(), ExitCode::preempted);
}

TEST(ProcessGroupTest, ARankThatIsAskedToStopDoesNotWaitForTheStore) {
  for (const bool at_once : {true, false}) {
    std::atomic<bool> stop_requested = at_once;
    const auto start = std::chrono::steady_clock::now();
    auto waiting_rank =
        std::async(std::launch::async, join_group, /*rank=*/1, /*port=*/9, &stop_requested);
    if (!at_once) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    stop_requested = true;
    EXPECT_EQ(waiting_rank.get(), ExitCode::preempted);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30)) << at_once;
  }
}

TEST(ProcessGroupTest, RanksThatEndedBeforeTheyWereCountedAreCountedAsMissing) {
  const StoreHost store("127.0.0.1");
  const GroupOptions options{
      .world = 3, .port = store.port(), .join_timeout = std::chrono::seconds(2)};
  for (const char* key : {"here/1", "here/2"}) keys_of(store.port())->add(key, 1);
  EXPECT_THAT([&] { const ProcessGroup group(options); },
              testing::ThrowsMessage<DeviceError>(Names(3, "2 ranks")));
}

constexpr const char* kReused = "precast";

/// The options of a rank whose group uses a store that other groups have used before.
GroupOptions on_reused_store(int port, int rank, int world) {
  return {.rank = rank,
          .world = world,
          .port = port,
          .prefix = kReused,
          .store_is_reused = true,
          .join_timeout = std::chrono::seconds(60)};
}

/// Creates a group with one thread per rank. @return the prefix of each rank's keys
std::vector<std::string> meet_on_reused_store(int port, int world) {
  std::vector<std::future<std::string>> ranks;
  for (int rank = 0; rank < world; ++rank) {
    ranks.push_back(std::async(std::launch::async, [port, rank, world] {
      ProcessGroup group(on_reused_store(port, rank, world));
      EXPECT_EQ(group.begin_sum(rank)->wait(), world * (world - 1) / 2);
      Heartbeat heartbeat(group.options(),
                          [](const std::string& /*cause*/, bool /*reported_elsewhere*/) {});
      EXPECT_EQ(heartbeat.claimed_cause(), "");
      static_cast<void>(group.all_gather("all have read the cause"));
      heartbeat.claim_failure("left behind for the next group");
      return group.options().prefix;
    }));
  }
  std::vector<std::string> prefixes;
  for (auto& rank : ranks) prefixes.push_back(rank.get());
  return prefixes;
}

TEST(ReusedStoreTest, EachGroupIgnoresTheKeysOfEarlierGroups) {
  const StoreHost store("127.0.0.1");
  std::set<std::string> prefixes;
  for (const int world : {3, 3, 4, 2}) {
    const std::vector<std::string> met = meet_on_reused_store(store.port(), world);
    EXPECT_THAT(met, testing::Each(testing::StartsWith("precast/")));
    EXPECT_THAT(met, testing::Each(met[0])) << world;
    EXPECT_TRUE(prefixes.insert(met[0]).second) << "the prefix of an earlier group";
  }
}

TEST(ReusedStoreTest, ARankThatWasKilledWhileJoiningCountsAsMissing) {
  const StoreHost store("127.0.0.1");
  const auto keys = keys_of(store.port(), kReused);
  for (const char* key : {"hello/1", "hello/2", "hello", "hello"}) keys->add(key, 1);
  GroupOptions options = on_reused_store(store.port(), 0, 3);
  options.join_timeout = std::chrono::seconds(2);
  EXPECT_THAT([&] { const ProcessGroup group(options); },
              testing::ThrowsMessage<DeviceError>(Names(3, "ranks 1, 2")));
  EXPECT_EQ(meet_on_reused_store(store.port(), 3).size(), 3U);
}

TEST(ReusedStoreTest, ADuplicateRankIsNamedOnAllRanks) {
  const StoreHost store("127.0.0.1");
  const auto join_group = [&](int rank) {
    return std::async(std::launch::async, [&store, rank] {
      EXPECT_THAT([&] { const ProcessGroup group(on_reused_store(store.port(), rank, 3)); },
                  testing::ThrowsMessage<DeviceError>(Names("rank 1")));
    });
  };
  auto zero = join_group(0);
  auto first = join_group(1);
  join_group(1).get();
  first.get();
  zero.get();
}

TEST(ReusedStoreTest, WithoutRankZeroItIsNamed) {
  const StoreHost store("127.0.0.1");
  GroupOptions options = on_reused_store(store.port(), 1, 2);
  options.join_timeout = std::chrono::seconds(1);
  EXPECT_THAT([&] { const ProcessGroup group(options); },
              testing::ThrowsMessage<DeviceError>(Names("rank 0", "1 s")));
}

TEST(ReusedStoreTest, ARankThatIsAskedToStopLeavesWithTheOthers) {
  const StoreHost store("127.0.0.1");
  std::atomic<bool> stop_requested = false;
  const auto join_group = [&](int rank) {
    return std::async(std::launch::async, [&, rank] {
      GroupOptions options = on_reused_store(store.port(), rank, 3);
      options.stop = rank == 1 ? &stop_requested : nullptr;
      try {
        const ProcessGroup group(options);
      } catch (const Error& error) {
        return error.exit_code();
      }
      return ExitCode::done;
    });
  };
  stop_requested = true;
  EXPECT_EQ(join_group(1).get(), ExitCode::preempted) << "without rank 0";
  auto zero = join_group(0);
  EXPECT_EQ(join_group(1).get(), ExitCode::preempted);
  EXPECT_EQ(zero.get(), ExitCode::preempted);
}

/// Collects the causes of failures that heartbeats report from their threads.
class CauseRecorder {
 public:
  [[nodiscard]] Heartbeat::OnFailure callback() {
    return [this](const std::string& cause, bool reported) {
      const std::scoped_lock lock(mutex_);
      all_.push_back({cause, reported});
      added_.notify_one();
    };
  }
  /// Waits for `count` causes, at most a minute. @return the causes so far.
  [[nodiscard]] std::vector<std::pair<std::string, bool>> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    added_.wait_for(lock, std::chrono::minutes(1), [&] { return all_.size() >= count; });
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  /// Each cause, and whether another rank reports it.
  std::vector<std::pair<std::string, bool>> all_;
};

constexpr HeartbeatOptions kQuick{.period = std::chrono::milliseconds(100), .missed = 10};

TEST(HeartbeatTest, ASilentRankIsNamed) {
  const StoreHost store("127.0.0.1");
  CauseRecorder causes;
  const Heartbeat alone({.rank = 0, .world = 2, .port = store.port()}, causes.callback(), kQuick);
  EXPECT_THAT(causes.wait_for(1), ElementsAre(Pair(Names("rank 1", "1 s"), false)));
}

TEST(HeartbeatTest, WhenTwoRanksNoticeASilenceOneReportsIt) {
  const StoreHost store("127.0.0.1");
  CauseRecorder causes;
  GroupOptions group{.rank = 0, .world = 3, .port = store.port()};
  const Heartbeat first(group, causes.callback(), kQuick);
  group.rank = 1;
  const Heartbeat second(group, causes.callback(), kQuick);
  EXPECT_THAT(causes.wait_for(2), UnorderedElementsAre(Pair(Names("rank", "1 s"), true),
                                                       Pair(Names("rank", "1 s"), false)));
}

TEST(HeartbeatTest, TheFirstClaimIsTheCause) {
  const StoreHost store("127.0.0.1");
  GroupOptions group{.rank = 0, .world = 2, .port = store.port()};
  const auto ignore = [](const std::string& /*cause*/, bool /*reported_elsewhere*/) {};
  Heartbeat first(group, ignore);
  group.rank = 1;
  Heartbeat second(group, ignore);
  EXPECT_TRUE(first.claim_failure("disk full"));
  EXPECT_FALSE(second.claim_failure("lost touch"));
  EXPECT_TRUE(second.wait_for_claim());
  EXPECT_THAT(second.claimed_cause(), Names("rank 0", "disk full"));
}

class CountingStore final : public c10d::HashStore {
 public:
  std::int64_t add(const std::string& key, std::int64_t value) override {
    ++requests;
    return c10d::HashStore::add(key, value);
  }
  int requests = 0;
};

/// The heartbeats of a group whose ranks may die, in simulated time: each round takes 5 s.
class SimulatedHeartbeats {
 public:
  explicit SimulatedHeartbeats(int world) {
    for (int rank = 0; rank < world; ++rank) ranks_.emplace_back(*store_, rank, world);
  }
  [[nodiscard]] int world() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] PeerWatch& rank(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int requests() const { return store_->requests; }
  /// All ranks except `quiet` send a beat, and read the beats of the ranks that they watch. @return
  /// the ranks found to be silent
  std::set<int> round(const std::set<int>& quiet) {
    now_ += std::chrono::seconds(5);
    std::set<int> silent;
    for (int i = 0; i < world(); ++i) {
      if (!quiet.contains(i)) rank(i).beat();
    }
    for (int i = 0; i < world(); ++i) {
      if (quiet.contains(i)) continue;
      if (const int found = rank(i).silent_rank(std::chrono::seconds(20), now_); found >= 0)
        silent.insert(found);
    }
    return silent;
  }

 private:
  c10::intrusive_ptr<CountingStore> store_ = c10::make_intrusive<CountingStore>();
  std::vector<PeerWatch> ranks_;
  PeerWatch::Clock::time_point now_ = PeerWatch::Clock::now();
};

TEST(PeerWatchTest, TheRequestsOfABeatDoNotGrowWithTheNumberOfRanks) {
  constexpr int kRounds = 3;
  SimulatedHeartbeats beats(64);
  for (int i = 0; i < kRounds; ++i) EXPECT_TRUE(beats.round({}).empty());
  EXPECT_EQ(beats.requests(), kRounds * 64 * (1 + PeerWatch::kWatched));
}

TEST(PeerWatchTest, RanksThatDieTogetherAreNoticed) {
  for (const int world : {2, 16}) {
    for (const int first : {0, world / 2, world - 1}) {
      // Up to 8 consecutive ranks die, as many as a host often has. Each rank watches fewer ranks.
      std::set<int> dead;
      for (int i = 0; i < std::min(world - 1, 8); ++i) dead.insert((first + i) % world);
      SimulatedHeartbeats beats(world);
      std::set<int> silent;
      EXPECT_TRUE(beats.round({}).empty());
      for (int i = 0; i < 5; ++i) silent = beats.round(dead);
      EXPECT_FALSE(silent.empty()) << world << " " << first;
      EXPECT_THAT(dead, testing::IsSupersetOf(silent));
    }
  }
}

TEST(PeerWatchTest, RanksBehindThoseThatHaveFinishedAreWatched) {
  SimulatedHeartbeats beats(16);
  std::set<int> quiet;
  EXPECT_TRUE(beats.round(quiet).empty());
  for (int rank = 1; rank < 15; ++rank) {
    beats.rank(rank).finish();
    quiet.insert(rank);
  }
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(beats.round(quiet).empty()) << i;
  quiet.insert(15);
  std::set<int> silent;
  for (int i = 0; i < 5; ++i) silent = beats.round(quiet);
  EXPECT_THAT(silent, ElementsAre(15));
}

TEST(PeerWatchTest, TheSilenceOfASuspendedRunDoesNotCount) {
  c10::intrusive_ptr<CountingStore> store = c10::make_intrusive<CountingStore>();
  PeerWatch watch(*store, 0, 2);
  const auto later = PeerWatch::Clock::now() + std::chrono::hours(1);
  watch.reset_silence(later);
  EXPECT_EQ(watch.silent_rank(std::chrono::seconds(20), later), -1);
  EXPECT_EQ(watch.silent_rank(std::chrono::seconds(20), later + std::chrono::seconds(21)), 1);
}

}  // namespace
}  // namespace precast::distributed
