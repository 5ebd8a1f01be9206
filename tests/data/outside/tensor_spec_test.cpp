#include "data/outside/tensor_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "data/outside/producer_error.h"
#include "tests/data/outside/test_message.h"
#include "tests/support/message_matchers.h"

namespace precast::data {
namespace {

using test::Names;
using test::TestBatch;
using ::testing::ThrowsMessage;

const TensorSpec kImage{
    .name = "image", .types = {ElementType::u8, ElementType::f32}, .shape = {2, 2, 3}};

template <typename T>
HostTensor output_of(std::vector<T>& values, ElementType type, std::vector<std::int64_t> shape) {
  return {.name = "classes",
          .type = type,
          .shape = std::move(shape),
          .data = reinterpret_cast<std::byte*>(values.data())};
}

TEST(FieldFormTest, AnOutputIsFoundByItsName) {
  const TestBatch made(3);
  EXPECT_EQ(&find_output(made.fields, kImage, 3, "m"), &made.fields[0]);
  const TensorSpec any{.name = "image", .types = {ElementType::u8}, .shape = {-1, -1, 3}};
  EXPECT_EQ(&find_output(made.fields, any, 3, "m"), &made.fields[0]);
}

TEST(FieldFormTest, AMissingOutputIsNamedBesideThoseThatExist) {
  const TestBatch made(3);
  const TensorSpec mask{.name = "mask", .types = {ElementType::u8}, .shape = {}};
  EXPECT_THAT([&] { static_cast<void>(find_output(made.fields, mask, 3, "m 5")); },
              ThrowsMessage<ProducerError>(Names("m 5", "mask", "image", "label")));
}

TEST(FieldFormTest, ATypeOrShapeThatDiffersIsAnErrorWithBoth) {
  const TestBatch made(3);
  const auto find = [&](const TensorSpec& spec, std::int64_t samples) {
    return [&made, spec, samples] {
      static_cast<void>(find_output(made.fields, spec, samples, "m 5"));
    };
  };
  EXPECT_THAT(find(kImage, 4),
              ThrowsMessage<ProducerError>(Names("m 5", "image", "[4, 2, 2, 3]", "[3, 2, 2, 3]")));
  TensorSpec other = kImage;
  other.shape = {2, 2};
  EXPECT_THAT(find(other, 3), ThrowsMessage<ProducerError>(Names("[3, 2, 2]")));
  other = kImage;
  other.types = {ElementType::f32};
  EXPECT_THAT(find(other, 3), ThrowsMessage<ProducerError>(Names("f4", "u1")));
}

TEST(FieldFormTest, ALabelOutOfRangeIsNamedWithItsSample) {
  std::vector<std::int64_t> labels = {0, 9, 10};
  const HostTensor output = output_of(labels, ElementType::i64, {3});
  check_classes(output, {.count = 11}, "m 5");
  EXPECT_THAT([&] { check_classes(output, {.count = 10}, "m 5"); },
              ThrowsMessage<ProducerError>(Names("m 5", "classes", 10, 2)));
  labels[0] = -1;
  EXPECT_THROW(check_classes(output, {.count = 11}, "m"), ProducerError);
}

TEST(FieldFormTest, APixelOutOfRangeIsNamedWithItsSampleUnlessItIsIgnored) {
  std::vector<std::uint8_t> mask = {0, 1, 2, 3, 255, 4, 0, 0};
  const HostTensor output = output_of(mask, ElementType::u8, {2, 2, 2});
  check_classes(output, {.count = 5, .ignored = 255}, "m 5");
  EXPECT_THAT([&] { check_classes(output, {.count = 5}, "m 5"); },
              ThrowsMessage<ProducerError>(Names("m 5", "classes", 5, 255, 1)));
  EXPECT_THAT([&] { check_classes(output, {.count = 4, .ignored = 255}, "m 5"); },
              ThrowsMessage<ProducerError>(Names(4, 255, 1)));
}

TEST(FieldFormTest, ClassesMayHaveAnyIntegerType) {
  const auto is_valid = [](auto value, ElementType type, std::int64_t count) {
    std::vector<decltype(value)> values = {value};
    try {
      check_classes(output_of(values, type, {1}), {.count = count}, "m");
      return true;
    } catch (const ProducerError&) {
      return false;
    }
  };
  EXPECT_TRUE(is_valid(std::int8_t{5}, ElementType::i8, 6));
  EXPECT_FALSE(is_valid(std::int8_t{-5}, ElementType::i8, 6));
  EXPECT_FALSE(is_valid(std::int16_t{6}, ElementType::i16, 6));
  EXPECT_FALSE(is_valid(std::uint16_t{65535}, ElementType::u16, 6));
  EXPECT_FALSE(is_valid(std::int32_t{-1}, ElementType::i32, 6));
  EXPECT_TRUE(is_valid(std::uint32_t{4294967295}, ElementType::u32, 4294967296));
  EXPECT_FALSE(is_valid(~std::uint64_t{0}, ElementType::u64, 6));
}

}  // namespace
}  // namespace precast::data
