#include "data/loader/shared_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/loader/batch_hash.h"
#include "tests/support/other_threads.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using ::testing::ElementsAre;
using Number = std::shared_ptr<const int>;
using Stream = SharedStream<Number>;

/// A source of `length` numbers per epoch: epoch * 100 + 0, 1, ...
struct Counter {
  int length = 10;
  /// The batch at which the source throws in every epoch; -1: never.
  int fails_at = -1;
  int given = 0;
  int epoch = 0;
  std::atomic<int> inside{0};

  Stream::Source source() {
    return {[this](const EpochRequest& request) {
              EXPECT_EQ(inside++, 0) << "only one consumer may use the source at a time";
              epoch = static_cast<int>(request.epoch);
              given = static_cast<int>(request.first_batch);
              --inside;
            },
            [this]() -> std::optional<Number> {
              EXPECT_EQ(inside++, 0) << "only one consumer may use the source at a time";
              const int number = given++;
              --inside;
              if (number == fails_at) throw DataError("sample 7 is damaged");
              if (number >= length) return std::nullopt;
              return std::make_shared<const int>(epoch * 100 + number);
            }};
  }
};

std::vector<int> rest(Stream::Consumer& consumer, int pause_us = 0) {
  std::vector<int> seen;
  while (const auto number = consumer.next()) {
    seen.push_back(**number);
    if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
  }
  return seen;
}

TEST(SharedStreamTest, EveryConsumerGetsTheSameInOrderOverEpochs) {
  Counter counter{.length = 200};
  Stream stream(counter.source(), 4, 3);
  std::vector<std::vector<int>> seen(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t c = 0; c < 4; ++c) {
      threads.emplace_back([&, c] {
        Stream::Consumer consumer = stream.consumer(c);
        for (int epoch = 0; epoch < 5; ++epoch) {
          consumer.begin_epoch({.epoch = epoch});
          for (const int number : rest(consumer, c == 2 ? 20 : 0)) seen[c].push_back(number);
        }
      });
    }
  }
  ASSERT_EQ(seen[0].size(), 1000U);
  EXPECT_EQ(seen[0][205], 105);
  for (std::size_t c = 1; c < 4; ++c) EXPECT_EQ(seen[c], seen[0]);
}

TEST(SharedStreamTest, TheFastestIsAtMostTheCapacityAheadOfTheSlowest) {
  Counter counter{.length = 100};
  Stream stream(counter.source(), 2, 3);
  Stream::Consumer slow = stream.consumer(0);
  std::atomic<int> taken{0};
  std::jthread fast([&] {
    Stream::Consumer consumer = stream.consumer(1);
    consumer.begin_epoch({});
    while (consumer.next()) ++taken;
  });
  slow.begin_epoch({});
  for (int batch = 0; batch < 100; ++batch) {
    test::wait_until_other_threads_sleep();  // the fast consumer has reached its limit
    EXPECT_EQ(taken, std::min(batch + 3, 100));
    EXPECT_EQ(**slow.next(), batch);
  }
  EXPECT_FALSE(slow.next());
}

TEST(SharedStreamTest, BatchesGoWhenTheSlowestHasThem) {
  Counter counter;
  Stream stream(counter.source(), 1, 2);
  Stream::Consumer only = stream.consumer(0);
  only.begin_epoch({});
  const std::weak_ptr<const int> first = *only.next();
  EXPECT_TRUE(first.expired());
}

TEST(SharedStreamTest, AConsumerThatLeavesHoldsUpNobody) {
  Counter counter{.length = 50};
  Stream stream(counter.source(), 3, 2);
  std::vector<std::vector<int>> seen(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t c = 0; c < 3; ++c) {
      threads.emplace_back([&, c] {
        Stream::Consumer consumer = stream.consumer(c);
        for (int epoch = 0; epoch < 3; ++epoch) {
          // Consumer 1 leaves before it has read anything, consumer 2 in the middle of epoch 1.
          if (c == 1) return;
          consumer.begin_epoch({.epoch = epoch});
          if (c == 2 && epoch == 1) {
            static_cast<void>(consumer.next());
            return;
          }
          for (const int number : rest(consumer)) seen[c].push_back(number);
        }
      });
    }
  }
  EXPECT_EQ(seen[0].size(), 150U);
  EXPECT_EQ(seen[2].size(), 50U);
}

TEST(SharedStreamTest, AnEpochGivenUpEarlyWaitsForTheOthersWithoutBlockingThem) {
  Counter counter{.length = 50};
  Stream stream(counter.source(), 2, 2);
  Stream::Consumer patient = stream.consumer(0);
  std::vector<int> second_epoch;
  std::jthread hasty([&] {
    Stream::Consumer consumer = stream.consumer(1);
    consumer.begin_epoch({.epoch = 0});
    static_cast<void>(consumer.next());
    consumer.begin_epoch({.epoch = 1});
    second_epoch = rest(consumer);
  });
  patient.begin_epoch({.epoch = 0});
  EXPECT_EQ(rest(patient).size(), 50U);
  patient.begin_epoch({.epoch = 1});
  EXPECT_EQ(rest(patient).size(), 50U);
  hasty.join();
  EXPECT_EQ(second_epoch.size(), 50U);
}

TEST(SharedStreamTest, ErrorsReachAllAtTheSameBatchAndTheNextEpochStarts) {
  Counter counter{.length = 20, .fails_at = 7};
  Stream stream(counter.source(), 3, 4);
  std::vector<std::jthread> threads;
  for (std::size_t c = 0; c < 3; ++c) {
    threads.emplace_back([&, c] {
      Stream::Consumer consumer = stream.consumer(c);
      for (int epoch = 0; epoch < 20; ++epoch) {
        consumer.begin_epoch({.epoch = epoch});
        int batches = 0;
        EXPECT_THROW(
            {
              while (consumer.next()) ++batches;
            },
            DataError);
        EXPECT_EQ(batches, 7);
        EXPECT_FALSE(consumer.next()) << "the error is reported only once";
      }
    });
  }
}

TEST(SharedStreamTest, WhoeverAsksForAnotherEpochThanTheFirstIsRefused) {
  Counter counter;
  Stream stream(counter.source(), 2, 2);
  const EpochRequest small{.image_size_px = 32};
  const EpochRequest large{.image_size_px = 64};
  std::atomic<int> refused{0};
  const auto ask = [&](std::size_t number, const EpochRequest& wanted, const EpochRequest& other) {
    Stream::Consumer consumer = stream.consumer(number);
    try {
      consumer.begin_epoch(wanted);
    } catch (const ConfigError&) {
      ++refused;
      consumer.begin_epoch(other);
    }
    EXPECT_EQ(**consumer.next(), 0);
  };
  {
    const std::jthread one([&] { ask(0, small, large); });
    const std::jthread two([&] { ask(1, large, small); });
  }
  EXPECT_EQ(refused, 1);
}

TEST(SharedStreamTest, OneLoaderFeedsSeveralModels) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "x.beton", test::golden_beton("img_jpg_w3"));
  const BetonReader reader(folder / "x.beton");
  LoaderOptions options;
  options.batch_size = 4;
  options.workers = 2;
  Loader loader(reader, standard_train_pipeline(), options);
  const auto expected = test::hashes_of_pass(loader, {.image_size_px = 16});
  SharedStream<HostBatch> stream({[&](const EpochRequest& request) { loader.begin_epoch(request); },
                                  [&] { return loader.next(); }},
                                 3, 2);
  std::vector<std::jthread> threads;
  for (std::size_t c = 0; c < 3; ++c) {
    threads.emplace_back([&, c] {
      auto consumer = stream.consumer(c);
      consumer.begin_epoch({.image_size_px = 16});
      std::vector<unsigned long> seen;
      while (const auto batch = consumer.next()) seen.push_back(test::hash(*batch));
      EXPECT_EQ(seen, expected);
    });
  }
}

}  // namespace
}  // namespace precast::data
