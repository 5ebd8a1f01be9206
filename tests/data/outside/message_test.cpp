#include "data/outside/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "data/outside/producer_error.h"
#include "tests/data/outside/test_message.h"
#include "tests/support/message_matchers.h"

namespace precast::data {
namespace {

using test::Names;
using test::raw_message;
using test::TestBatch;
using ::testing::ThrowsMessage;

TEST(OutsideMessageTest, ABatchReadsAsItWasWritten) {
  const TestBatch made(3);
  const auto bytes = made.message(RingPosition{.epoch = 2, .batch = 9});
  const OutsideMessage parsed = parse_outside_message(bytes);
  EXPECT_FALSE(parsed.end);
  EXPECT_EQ(parsed.position, (RingPosition{.epoch = 2, .batch = 9}));
  ASSERT_EQ(parsed.fields.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const HostTensor& got = parsed.fields[i];
    EXPECT_EQ(got.name, made.fields[i].name);
    EXPECT_EQ(got.type, made.fields[i].type);
    EXPECT_EQ(got.shape, made.fields[i].shape);
    EXPECT_TRUE(std::equal(got.data, got.data + got.bytes(), made.fields[i].data));
  }
}

TEST(OutsideMessageTest, ABatchMayHaveNoNumbers) {
  EXPECT_FALSE(parse_outside_message(TestBatch(1).message()).position);
}

TEST(OutsideMessageTest, TheReasonOfAnEndIsPrintable) {
  const auto parsed = parse_outside_message(raw_message(R"({"end":"a\u001b[31m\nb"})"));
  EXPECT_EQ(parsed.end, "a?[31m?b");
  EXPECT_TRUE(parsed.fields.empty());
}

TEST(OutsideMessageTest, EachShorterOrLongerMessageIsAnError) {
  auto bytes = TestBatch(2).message(RingPosition{});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A buffer of exactly `size` bytes, so that a sanitizer detects reads past the end.
    const std::vector<std::byte> torn(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(static_cast<void>(parse_outside_message(torn)), ProducerError) << size;
  }
  bytes.push_back({});
  EXPECT_THROW(static_cast<void>(parse_outside_message(bytes)), ProducerError);
}

TEST(OutsideMessageTest, AChangedByteIsAnErrorOrStaysInsideTheMessage) {
  const auto bytes = TestBatch(2).message(RingPosition{.epoch = 1, .batch = 2});
  int errors = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int change : {0x01, 0x10, 0x80, 0xff}) {
      std::vector<std::byte> changed = bytes;
      changed[at] ^= static_cast<std::byte>(change);
      try {
        for (const HostTensor& field : parse_outside_message(changed).fields) {
          EXPECT_GE(field.data, changed.data());
          EXPECT_LE(field.data + field.bytes(), changed.data() + changed.size());
        }
      } catch (const ProducerError& error) {
        EXPECT_EQ(error.exit_code(), ExitCode::loader);
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 100);
}

TEST(OutsideMessageTest, InvalidHeadersAreErrors) {
  const std::string name(64, 'n');
  const std::string output = R"({"name":"x","dtype":"|u1","shape":[1]})";
  const std::string many = [&] {
    std::string all = output;
    for (int i = 0; i < 64; ++i) all += "," + output;
    return all;
  }();
  const std::string headers[] = {
      "",
      "[]",
      "1",
      "{",
      "{}",
      R"({"outputs":[]})",
      R"({"outputs":{}})",
      R"({"outputs":[1]})",
      R"({"outputs":[{"dtype":"|u1","shape":[1]}]})",
      R"({"outputs":[{"name":"x","shape":[1]}]})",
      R"({"outputs":[{"name":"x","dtype":"|u1"}]})",
      R"({"outputs":[{"name":"","dtype":"|u1","shape":[1]}]})",
      R"({"outputs":[{"name":"a\nb","dtype":"|u1","shape":[1]}]})",
      R"({"outputs":[{"name":")" + name + R"(","dtype":"|u1","shape":[1]}]})",
      R"({"outputs":[{"name":1,"dtype":"|u1","shape":[1]}]})",
      R"({"outputs":[{"name":"x","dtype":">u2","shape":[1]}]})",
      R"({"outputs":[{"name":"x","dtype":"|u1","shape":[]}]})",
      R"({"outputs":[{"name":"x","dtype":"|u1","shape":[1,1,1,1,1,1,1,1,1]}]})",
      R"({"outputs":[{"name":"x","dtype":"|u1","shape":[-1]}]})",
      R"({"outputs":[{"name":"x","dtype":"|u1","shape":[1.0]}]})",
      R"({"outputs":[{"name":"x","dtype":"|u1","shape":[2]}]})",
      R"({"outputs":[{"name":"x","dtype":"<i8","shape":[1]}]})",
      R"({"outputs":[{"name":"x","dtype":"<i8","shape":[1099511627777]}]})",
      R"({"outputs":[{"name":"x","dtype":"<i8","shape":[1099511627776,1099511627776]}]})",
      R"({"outputs":[{"name":"x","dtype":"|u1","shape":[1],"strides":[1]}]})",
      R"({"epoch":1,"outputs":[)" + output + "]}",
      R"({"batch":1,"outputs":[)" + output + "]}",
      R"({"epoch":-1,"batch":1,"outputs":[)" + output + "]}",
      R"({"epoch":9223372036854775808,"batch":1,"outputs":[)" + output + "]}",
      R"({"seed":1,"outputs":[)" + output + "]}",
      R"({"outputs":[)" + output + "," + output + "]}",
      R"({"outputs":[)" + many + "]}",
      R"({"end":1})",
      R"({"end":"x"})",
      R"({"end":"x","epoch":1})"};
  for (const std::string& header : headers)
    EXPECT_THROW(static_cast<void>(parse_outside_message(raw_message(header, "d"))), ProducerError)
        << header;
  const std::string valid = R"({"outputs":[)" + output + "]}";
  EXPECT_EQ(parse_outside_message(raw_message(valid, "d")).fields.size(), 1U);
}

TEST(OutsideMessageTest, OutputsHaveTheSameNumberOfSamples) {
  const auto message = raw_message(
      R"({"outputs":[{"name":"a","dtype":"|u1","shape":[1]},{"name":"b","dtype":"|u1","shape":[2]}]})",
      "abc");
  EXPECT_THAT([&] { static_cast<void>(parse_outside_message(message)); },
              ThrowsMessage<ProducerError>(Names(1, 2)));
}

TEST(OutsideMessageTest, AnotherVersionIsNamed) {
  const auto message = raw_message("{}", "", /*version=*/7);
  EXPECT_THAT([&] { static_cast<void>(parse_outside_message(message)); },
              ThrowsMessage<ProducerError>(Names("version", 7)));
}

TEST(OutsideMessageTest, ADeeplyNestedHeaderIsAnError) {
  const std::string deep(30000, '['), end(30000, ']');
  for (const std::string& header :
       {deep, deep + end, R"({"end":)" + deep + end + "}", R"({"outputs":)" + deep + end + "}",
        R"({"outputs":[{"name":"x","dtype":"|u1","shape":)" + deep + end + "}]}"}) {
    EXPECT_THROW(static_cast<void>(parse_outside_message(raw_message(header))), ProducerError);
  }
}

TEST(OutsideMessageTest, AHeaderIsAtMost64KiB) {
  const std::string spaces(kMaxMessageHeaderBytes, ' ');
  EXPECT_THROW(static_cast<void>(parse_outside_message(raw_message(R"({"end":""})" + spaces))),
               ProducerError);
}

}  // namespace
}  // namespace precast::data
