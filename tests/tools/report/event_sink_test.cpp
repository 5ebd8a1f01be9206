#include "tools/report/event_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "tests/support/full_disk.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

struct Event {
  std::uint64_t step = 0;
  std::map<std::string, float> scalars;
};

/// Reads the parts of Protocol Buffers messages that events use.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}
  [[nodiscard]] bool done() const { return rest_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view take(std::size_t size) {
    const std::string_view front = rest_.substr(0, size);
    rest_.remove_prefix(front.size());
    return front;
  }

 private:
  std::string_view rest_;
};

Event event_of(std::string_view bytes) {
  Event event;
  for (Message message(bytes); !message.done();) {
    const std::uint64_t key = message.varint();
    if (key == (1 << 3 | 1)) {
      message.take(8);
    } else if (key == (2 << 3 | 0)) {
      event.step = message.varint();
    } else {
      const std::string_view field = message.take(message.varint());
      for (Message summary(key == (5 << 3 | 2) ? field : ""); !summary.done();) {
        EXPECT_EQ(summary.varint(), 1U << 3 | 2U);
        Message value(summary.take(summary.varint()));
        EXPECT_EQ(value.varint(), 1U << 3 | 2U);
        const std::string tag(value.take(value.varint()));
        EXPECT_EQ(value.varint(), 2U << 3 | 5U);
        std::memcpy(&event.scalars[tag], value.take(4).data(), 4);
      }
    }
  }
  return event;
}

/// All events after the first one, which contains the version.
std::vector<Event> events_of(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<Event> all;
  while (!rest.empty()) {
    std::uint64_t size = 0;
    std::memcpy(&size, rest.data(), 8);
    all.push_back(event_of(rest.substr(12, size)));
    rest.remove_prefix(16 + size);
  }
  EXPECT_TRUE(!all.empty() && all[0].scalars.empty()) << "the version comes first";
  all.erase(all.begin());
  return all;
}

ordered_json step_record(int step) {
  return {{"step", step},       {"epoch", 0},         {"loss", 2.5},
          {"current_lr", 0.25}, {"train_time", step}, {"wait_time", 0.5 * step},
          {"images", 64 * step}};
}

TEST(EventSinkTest, WritesTheScalarsOfStepsAndEpochs) {
  const test::TemporaryFolder folder;
  EventSink sink(folder / kEventFile);
  sink.write(step_record(0));
  sink.write(step_record(4));
  sink.write({{"epoch", 0},
              {"steps", 8},
              {"skipped_steps", 1},
              {"top_1", 0.5},
              {"val_loss", 1.5},
              {"train_time", 10},
              {"images", 640},
              {"wait_time", 1}});
  const auto events = events_of(folder / kEventFile);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].step, 4U);
  EXPECT_THAT(events[1].scalars,
              UnorderedElementsAre(Pair("train/loss", 2.5F), Pair("train/lr", 0.25F),
                                   Pair("train/images_per_second", FloatEq(64)),
                                   Pair("train/wait_share", FloatEq(0.5F))));
  EXPECT_EQ(events[2].step, 8U);
  EXPECT_THAT(events[2].scalars,
              UnorderedElementsAre(Pair("val/top_1", 0.5F), Pair("val/loss", 1.5F),
                                   Pair("epoch/images_per_second", FloatEq(64)),
                                   Pair("epoch/wait_share", FloatEq(0.1F))));
}

TEST(EventSinkTest, WhatIsNotFiniteIsLeftOut) {
  const test::TemporaryFolder folder;
  EventSink sink(folder / kEventFile);
  sink.write({{"epoch", 0},
              {"steps", 1},
              {"train_loss", std::numeric_limits<double>::quiet_NaN()},
              {"val_loss", nullptr}});
  EXPECT_EQ(sink.position(), 0);
  sink.write({{"epoch", 0}, {"top_1", 1}});
  EXPECT_EQ(sink.position(), 0) << "a record without steps does not move the position";
}

TEST(EventSinkTest, ContinuesFromTheCheckpointAfterACrash) {
  const test::TemporaryFolder folder;
  std::int64_t position = 0;
  {
    EventSink sink(folder / kEventFile);
    sink.write(step_record(0));
    position = sink.position();
    sink.write(step_record(1));
  }
  EventSink sink(folder / kEventFile);
  sink.rewind(position);
  sink.write(step_record(9));
  sink.write(step_record(10));
  const auto events = events_of(folder / kEventFile);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].step, 9U);
  EXPECT_EQ(events[1].scalars.count("train/images_per_second"), 0U)
      << "the time of the previous step is unknown";
  EXPECT_FLOAT_EQ(events[2].scalars.at("train/images_per_second"), 64);
  sink.rewind(0);
  sink.write(step_record(2));
  EXPECT_EQ(events_of(folder / kEventFile).size(), 1U);
}

TEST(EventSinkTest, ARewoundFileKeepsTheEarlierRecordsThatAFullDiskRefused) {
  const test::TemporaryFolder folder;
  test::PartlyFullDisk disk;
  EventSink sink(folder / kEventFile, disk);
  sink.write(step_record(0));
  disk.left = 7;
  sink.write(step_record(1));
  const std::int64_t position = sink.position();
  sink.write(step_record(2));
  sink.rewind(position);
  EXPECT_EQ(sink.position(), position);
  disk.left = 1000;
  sink.write(step_record(3));
  const auto events = events_of(folder / kEventFile);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].step, 1U);
  EXPECT_EQ(events[2].step, 3U);
}

TEST(EventSinkTest, AnIncompleteRecordIsTruncatedAfterACrash) {
  for (const int lost : {1, 5, 20}) {
    const test::TemporaryFolder folder;
    {
      EventSink sink(folder / kEventFile);
      for (int step = 0; step < 3; ++step) sink.write(step_record(step));
    }
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(folder / kEventFile));
    std::filesystem::resize_file(folder / kEventFile, static_cast<std::uintmax_t>(size - lost));
    EventSink sink(folder / kEventFile);
    sink.rewind(size);
    sink.write(step_record(9));
    const auto events = events_of(folder / kEventFile);
    ASSERT_EQ(events.size(), 3U);
    EXPECT_EQ(events[2].step, 9U);
    EXPECT_EQ(events[2].scalars.count("train/loss"), 1U);
  }
}

}  // namespace
}  // namespace precast::tools
