#include "data/ring/item.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#include "data/ring/layout.h"
#include "data/ring/messages.h"
#include "data/ring/ring_error.h"
#include "data/ring/ring_reader.h"
#include "tests/data/ring/test_ring.h"
#include "tests/support/message_matchers.h"
#include "tests/support/other_threads.h"

namespace precast::data {
namespace {

using test::Names;
using test::TestRing;
using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kSlotAt = TestRing::kSlotsAt, kOutputAt = kSlotAt + 64;

void store(TestRing& ring, std::size_t at, std::uint64_t value, std::size_t bytes = 8) {
  std::memcpy(ring.bytes().data() + at, &value, bytes);
}

TEST(RingLayoutTest, HasTheOffsetsOfTheDocument) {
  EXPECT_EQ(std::memcmp("PCSTRING", &kRingMagic, 8), 0);
  EXPECT_EQ(offsetof(RingHeader, version), 8U);
  EXPECT_EQ(offsetof(RingHeader, slots), 12U);
  EXPECT_EQ(offsetof(RingHeader, segment_bytes), 16U);
  EXPECT_EQ(offsetof(RingHeader, cells), 24U);
  EXPECT_EQ(offsetof(RingHeader, control_offset), 32U);
  EXPECT_EQ(offsetof(RingHeader, slots_offset), 40U);
  EXPECT_EQ(offsetof(RingHeader, slot_bytes), 48U);
  EXPECT_EQ(offsetof(RingHeader, data_offset), 56U);
  EXPECT_EQ(offsetof(RingHeader, data_bytes), 64U);
  EXPECT_EQ(offsetof(RingHeader, description_offset), 72U);
  EXPECT_EQ(offsetof(RingHeader, description_bytes), 80U);
  EXPECT_EQ(offsetof(RingSlot, kind), 8U);
  EXPECT_EQ(offsetof(RingSlot, outputs), 12U);
  EXPECT_EQ(offsetof(RingSlot, epoch), 16U);
  EXPECT_EQ(offsetof(RingSlot, batch), 24U);
  EXPECT_EQ(offsetof(RingSlot, samples), 32U);
  EXPECT_EQ(offsetof(RingSlot, ids_offset), 40U);
  EXPECT_EQ(offsetof(RingOutput, dtype), 64U);
  EXPECT_EQ(offsetof(RingOutput, dimensions), 72U);
  EXPECT_EQ(offsetof(RingOutput, shape), 80U);
  EXPECT_EQ(offsetof(RingOutput, strides), 144U);
  EXPECT_EQ(offsetof(RingOutput, offset), 208U);
  EXPECT_EQ(offsetof(RingJoinMessage, mode), 12U);
  EXPECT_EQ(offsetof(RingJoinMessage, epoch), 16U);
  EXPECT_EQ(offsetof(RingJoinMessage, batch), 24U);
  EXPECT_EQ(offsetof(RingReplyMessage, kind), 12U);
  EXPECT_EQ(offsetof(RingReplyMessage, cell), 16U);
  EXPECT_EQ(offsetof(RingReplyMessage, exit_code), 20U);
  EXPECT_EQ(offsetof(RingReplyMessage, sequence), 24U);
  EXPECT_EQ(sizeof(RingReplyMessage), 32U);
}

TEST(RingItemTest, ReadsWhatWasWritten) {
  TestRing ring;
  const RingHeader header = read_ring_header(ring.bytes());
  EXPECT_EQ(read_ring_description(ring.bytes(), header), TestRing::kDescription);
  const RingItem batch = read_ring_item(ring.bytes(), header, 0);
  EXPECT_EQ(batch.kind, RingKind::batch);
  EXPECT_EQ(batch.position, (RingPosition{.epoch = 5, .batch = 7}));
  EXPECT_THAT(batch.sample_ids, ElementsAre(9, 4, 6));
  ASSERT_EQ(batch.fields.size(), 2U);
  EXPECT_EQ(batch.fields[0].name, "image");
  EXPECT_THAT(batch.fields[0].shape, ElementsAre(3, 2, 2));
  EXPECT_EQ(batch.fields[0].values<std::uint8_t>()[11], 11);
  EXPECT_EQ(batch.fields[1].name, "label");
  EXPECT_EQ(batch.fields[1].type, ElementType::i64);
  const RingItem end = read_ring_item(ring.bytes(), header, 1);
  EXPECT_EQ(end.kind, RingKind::end_of_pass);
  EXPECT_EQ(end.position, (RingPosition{.epoch = 5, .batch = 8}));
}

TEST(RingItemTest, ARingWithoutADescriptionIsValid) {
  TestRing ring;
  store(ring, 72, kHuge);
  store(ring, 80, 0);
  EXPECT_EQ(read_ring_description(ring.bytes(), read_ring_header(ring.bytes())), "");
}

struct Damage {
  std::string field;
  std::size_t at = 0;
  std::uint64_t value = 0;
  std::size_t bytes = 8;
};

class RingHeaderDamageTest : public ::testing::TestWithParam<Damage> {};

TEST_P(RingHeaderDamageTest, IsAnErrorThatNamesTheField) {
  const Damage& damage = GetParam();
  TestRing ring;
  store(ring, damage.at, damage.value, damage.bytes);
  EXPECT_THAT([&] { static_cast<void>(read_ring_header(ring.bytes())); },
              ThrowsMessage<RingError>(Names(damage.field, damage.value)));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, RingHeaderDamageTest,
    ::testing::Values(
        Damage{"magic", 0, kRingMagic + 1}, Damage{"version", 8, 2, 4}, Damage{"slots", 12, 0, 4},
        Damage{"slots", 12, 1025, 4}, Damage{"segment_bytes", 16, TestRing::kBytes - 1},
        Damage{"segment_bytes", 16, TestRing::kBytes + 64}, Damage{"segment_bytes", 16, kHuge},
        Damage{"cells", 24, 0, 4}, Damage{"cells", 24, 65, 4}, Damage{"control_offset", 32, 128},
        Damage{"control_offset", 32, 193}, Damage{"control_offset", 32, kHuge - 63},
        Damage{"control_offset", 32, 1728}, Damage{"slots_offset", 40, 384},
        Damage{"slots_offset", 40, 449}, Damage{"slots_offset", 40, kHuge - 63},
        Damage{"slots_offset", 40, 832}, Damage{"slot_bytes", 48, 0}, Damage{"slot_bytes", 48, 63},
        Damage{"slot_bytes", 48, 577}, Damage{"slot_bytes", 48, 64 + 65 * 256},
        Damage{"slot_bytes", 48, kHuge}, Damage{"data_offset", 56, 1536},
        Damage{"data_offset", 56, 1601}, Damage{"data_offset", 56, kHuge - 63},
        Damage{"data_bytes", 64, 321}, Damage{"data_bytes", 64, kHuge},
        Damage{"description_offset", 72, 128}, Damage{"description_offset", 72, 193},
        Damage{"description_offset", 72, TestRing::kBytes},
        Damage{"description_offset", 72, kHuge - 63},
        Damage{"description_bytes", 80, kMaxRingDescriptionBytes + 1},
        Damage{"description_bytes", 80, kHuge}));

class RingSlotDamageTest : public ::testing::TestWithParam<Damage> {};

TEST_P(RingSlotDamageTest, IsAnErrorThatNamesTheField) {
  const Damage& damage = GetParam();
  TestRing ring;
  const RingHeader header = read_ring_header(ring.bytes());
  store(ring, damage.at, damage.value, damage.bytes);
  EXPECT_THAT([&] { static_cast<void>(read_ring_item(ring.bytes(), header, 0)); },
              ThrowsMessage<RingError>(Names(damage.field)));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, RingSlotDamageTest,
    ::testing::Values(Damage{"sequence", kSlotAt, 2}, Damage{"kind", kSlotAt + 8, 0, 4},
                      Damage{"kind", kSlotAt + 8, 3, 4}, Damage{"outputs", kSlotAt + 8, 2, 4},
                      Damage{"outputs", kSlotAt + 12, 3, 4},
                      Damage{"outputs", kSlotAt + 12, kHuge, 4},
                      Damage{"epoch", kSlotAt + 16, kHuge}, Damage{"batch", kSlotAt + 24, kHuge},
                      Damage{"samples", kSlotAt + 32, kHuge},
                      Damage{"ids_offset", kSlotAt + 32, 33}, Damage{"shape", kSlotAt + 32, 2},
                      Damage{"ids_offset", kSlotAt + 40, kHuge - 63},
                      Damage{"ids_offset", kSlotAt + 40, TestRing::kDataAt - 64},
                      Damage{"ids_offset", kSlotAt + 40, TestRing::kBytes},
                      Damage{"ids_offset", kSlotAt + 40, TestRing::kDataAt + 8}));

INSTANTIATE_TEST_SUITE_P(
    Outputs, RingSlotDamageTest,
    ::testing::Values(Damage{"name", kOutputAt, 0}, Damage{"name", kOutputAt, 0x1b, 1},
                      Damage{"name", kOutputAt + 256, 0x6567616d69},
                      Damage{"dtype", kOutputAt + 64, 0}, Damage{"dtype", kOutputAt + 64, kHuge},
                      Damage{"dimensions", kOutputAt + 72, 0, 4},
                      Damage{"dimensions", kOutputAt + 72, 9, 4},
                      Damage{"shape", kOutputAt + 80, 4}, Damage{"shape", kOutputAt + 88, kHuge},
                      Damage{"shape", kOutputAt + 96, kMaxRingDimensionSize + 1},
                      Damage{"strides", kOutputAt + 96, kMaxRingDimensionSize},
                      Damage{"strides", kOutputAt + 144, 8}, Damage{"strides", kOutputAt + 160, 0},
                      Damage{"offset", kOutputAt + 208, kHuge - 63},
                      Damage{"offset", kOutputAt + 208, 0},
                      Damage{"offset", kOutputAt + 208, TestRing::kBytes},
                      Damage{"offset", kOutputAt + 208, TestRing::kDataAt + 1}));

TEST(RingItemTest, SizesThatOverflowAreErrors) {
  TestRing ring;
  const RingHeader header = read_ring_header(ring.bytes());
  store(ring, kOutputAt + 72, 4, 4);
  for (std::size_t i = 1; i < 4; ++i) store(ring, kOutputAt + 80 + 8 * i, kMaxRingDimensionSize);
  EXPECT_THAT([&] { static_cast<void>(read_ring_item(ring.bytes(), header, 0)); },
              ThrowsMessage<RingError>(Names("shape", kMaxRingDimensionSize)));
}

TEST(RingItemTest, ANameWithoutAnEndIsAnError) {
  TestRing ring;
  const RingHeader header = read_ring_header(ring.bytes());
  std::memset(ring.bytes().data() + kOutputAt, 'a', 64);
  EXPECT_THROW(static_cast<void>(read_ring_item(ring.bytes(), header, 0)), RingError);
}

TEST(RingItemTest, EveryDamagedByteIsAnErrorOrLeavesAllInsideTheData) {
  const TestRing intact;
  for (std::size_t at = 0; at < TestRing::kDataAt; ++at) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      TestRing ring = intact;
      ring.bytes()[at] = static_cast<std::byte>(value);
      try {
        const RingHeader header = read_ring_header(ring.bytes());
        for (const std::uint64_t sequence : {0, 1}) {
          const RingItem item = read_ring_item(ring.bytes(), header, sequence);
          for (const HostTensor& field : item.fields) {
            ASSERT_GE(field.data, ring.bytes().data() + header.data_offset) << at;
            ASSERT_LE(field.data + field.bytes(),
                      ring.bytes().data() + header.data_offset + header.data_bytes)
                << at;
          }
        }
      } catch (const RingError&) {
        // Any error of this type is a correct result.
      }
    }
  }
}

TEST(RingReaderTest, APublishedNumberThatCannotBeIsAnError) {
  TestRing ring;
  const RingHeader header = read_ring_header(ring.bytes());
  std::byte* const control = ring.bytes().data() + TestRing::kControlAt;
  EXPECT_THROW(RingReader(ring.bytes(), header, control, 2, 0), RingError)
      << "the cell does not exist";
  EXPECT_THROW(RingReader(ring.bytes(), header, control, 0, 3), RingError)
      << "the sequence number has not been published";
  RingReader reader(ring.bytes(), header, control, 0, 0);
  EXPECT_TRUE(reader.take());
  for (const std::uint64_t published : {std::uint64_t{0}, std::uint64_t{4}, kHuge}) {
    store(ring, kRingPublishedAt, published);
    EXPECT_THAT([&] { static_cast<void>(reader.take()); },
                ThrowsMessage<RingError>(Names("published", published)));
  }
}

TEST(RingWriterTest, CellsThatAConsumerDamagedDoNotFreeMoreThanItsOwn) {
  TestRing ring;
  RingWriter writer(ring.bytes(), ring.header, 3);
  const auto intact_admission = writer.admit({});
  const auto damaged_admission = writer.admit({});
  const auto publish = [&](std::int64_t batch) {
    return writer.publish({.kind = RingKind::end_of_pass, .position = {.epoch = batch}}, nullptr);
  };
  store(ring, TestRing::kControlAt + kCellsAt + damaged_admission.cell * kCellBytes, kHuge);
  EXPECT_TRUE(publish(0));
  EXPECT_TRUE(publish(1));
  store(ring, TestRing::kControlAt + kCellsAt + damaged_admission.cell * kCellBytes, 0);
  store(ring, TestRing::kControlAt + kCellsAt + intact_admission.cell * kCellBytes, 1);
  EXPECT_TRUE(publish(2)) << "slots that a consumer has released stay released";
  bool published = true;
  std::jthread waiting([&] { published = publish(3); });
  test::wait_until_other_threads_sleep();
  writer.stop();
  waiting.join();
  EXPECT_FALSE(published) << "the slot of item 1 is in use";
}

TEST(RingWriterTest, AnItemThatNoConsumerCouldReadIsAnError) {
  TestRing ring;
  RingWriter writer(ring.bytes(), ring.header, 3);
  std::byte outside{};
  const auto publish = [&](HostTensor field) {
    field.type = ElementType::u8;
    if (field.data == nullptr) field.data = ring.bytes().data() + TestRing::kDataAt + 128;
    writer.publish({.fields = {std::move(field)}, .sample_ids = {1}}, nullptr);
  };
  EXPECT_THAT([&] { publish({.name = "a", .shape = {1}, .data = &outside}); },
              ThrowsMessage<RingError>(Names("offset")));
  EXPECT_THAT([&] { publish({.name = "a", .shape = {2}}); },
              ThrowsMessage<RingError>(Names("shape")));
  EXPECT_THAT([&] { publish({.name = std::string(64, 'a'), .shape = {1}}); },
              ThrowsMessage<RingError>(Names("name", 64)));
  EXPECT_THAT([&] { publish({.name = "a", .shape = std::vector<std::int64_t>(9, 1)}); },
              ThrowsMessage<RingError>(Names("dimensions", 9)));
  EXPECT_THROW(writer.publish({.sample_ids = {1, 2, 3, 4}}, nullptr), RingError);
  EXPECT_TRUE(writer.publish({.position = {.epoch = 2}}, nullptr));
  EXPECT_THROW(writer.publish({.position = {.epoch = 2}}, nullptr), RingError)
      << "the position is not later than the last one";
}

std::span<const std::byte> bytes_of(const RingReplyMessage& message) {
  return std::as_bytes(std::span(&message, 1));
}

TEST(RingMessageTest, InvalidMessagesAreErrors) {
  EXPECT_NO_THROW(static_cast<void>(parse_ring_reply(bytes_of({.kind = 1}))));
  EXPECT_THROW(static_cast<void>(parse_ring_reply({})), RingError);
  EXPECT_THROW(static_cast<void>(parse_ring_reply(bytes_of({.kind = 2}).first(31))), RingError);
  EXPECT_THROW(static_cast<void>(parse_ring_reply(bytes_of({.magic = 1, .kind = 1}))), RingError);
  EXPECT_THROW(static_cast<void>(parse_ring_reply(bytes_of({.kind = 3}))), RingError);
  EXPECT_THROW(static_cast<void>(parse_ring_reply(bytes_of({.kind = 2, .exit_code = 256}))),
               RingError);
  EXPECT_THAT(
      [] { static_cast<void>(parse_ring_reply(bytes_of({.version = 7, .kind = 1}).first(12))); },
      ThrowsMessage<RingError>(Names(kRingVersion, 7)));
  for (const RingJoinMessage& join :
       {RingJoinMessage{.mode = 0}, RingJoinMessage{.mode = 4},
        RingJoinMessage{.mode = 1, .epoch = kHuge}, RingJoinMessage{.mode = 1, .batch = kHuge},
        RingJoinMessage{.mode = 2, .batch = 1}, RingJoinMessage{.mode = 3, .batch = 1}})
    EXPECT_THROW(static_cast<void>(parse_ring_join(std::as_bytes(std::span(&join, 1)))), RingError);
}

}  // namespace
}  // namespace precast::data
