#include "data/outside/field_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "data/outside/producer_error.h"
#include "tests/data/outside/made_message.h"
#include "tests/support/message_matchers.h"

namespace precast::data {
namespace {

using test::MadeBatch;
using test::Names;
using ::testing::ThrowsMessage;

const FieldForm kImage{
    .name = "image", .types = {ElementType::u8, ElementType::f32}, .shape = {2, 2, 3}};

TEST(FieldFormTest, AnOutputIsFoundByItsName) {
  const MadeBatch made(3);
  EXPECT_EQ(&find_output(made.fields, kImage, 3, "m"), &made.fields[0]);
  const FieldForm any{.name = "image", .types = {ElementType::u8}, .shape = {-1, -1, 3}};
  EXPECT_EQ(&find_output(made.fields, any, 3, "m"), &made.fields[0]);
}

TEST(FieldFormTest, AMissingOutputIsNamedBesideThoseThatExist) {
  const MadeBatch made(3);
  const FieldForm mask{.name = "mask", .types = {ElementType::u8}, .shape = {}};
  EXPECT_THAT([&] { static_cast<void>(find_output(made.fields, mask, 3, "m 5")); },
              ThrowsMessage<ProducerError>(Names("m 5", "mask", "image", "label")));
}

TEST(FieldFormTest, ATypeOrShapeThatDiffersIsAnErrorWithBoth) {
  const MadeBatch made(3);
  const auto find = [&](const FieldForm& form, std::int64_t samples) {
    return [&made, form, samples] {
      static_cast<void>(find_output(made.fields, form, samples, "m 5"));
    };
  };
  EXPECT_THAT(find(kImage, 4),
              ThrowsMessage<ProducerError>(Names("m 5", "image", "[4, 2, 2, 3]", "[3, 2, 2, 3]")));
  FieldForm other = kImage;
  other.shape = {2, 2};
  EXPECT_THAT(find(other, 3), ThrowsMessage<ProducerError>(Names("[3, 2, 2]")));
  other = kImage;
  other.types = {ElementType::f32};
  EXPECT_THAT(find(other, 3), ThrowsMessage<ProducerError>(Names("f4", "u1")));
}

TEST(FieldFormTest, ALabelOutOfRangeIsNamedWithItsSample) {
  const std::vector<std::int64_t> labels = {0, 9, 10};
  check_labels(labels, 11, "label", "m 5");
  EXPECT_THAT([&] { check_labels(labels, 10, "label", "m 5"); },
              ThrowsMessage<ProducerError>(Names("m 5", "label", 10, 2)));
  EXPECT_THROW(check_labels(std::vector<std::int64_t>{-1}, 10, "label", "m"), ProducerError);
}

}  // namespace
}  // namespace precast::data
