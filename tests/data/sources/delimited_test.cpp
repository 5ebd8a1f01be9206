#include "data/sources/delimited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"

namespace precast::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ParseDelimited, QuotesHoldDelimitersLinesAndQuotes) {
  const auto rows = parse_delimited("a,b\r\n\"x,\"\"y\"\"\nz\",\n\n,\"\"\nlast,1", ',', "t");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_THAT(rows[0], ElementsAre("a", "b"));
  EXPECT_THAT(rows[1], ElementsAre("x,\"y\"\nz", ""));
  EXPECT_THAT(rows[2], ElementsAre("", ""));
  EXPECT_THAT(rows[3], ElementsAre("last", "1"));
  EXPECT_THAT([] { (void)parse_delimited("a\n\"b\nc", ',', "t"); },
              ThrowsMessage<DataError>(HasSubstr("t: line 2: expected a closing quote")));
  EXPECT_THAT([] { (void)parse_delimited("a\n\"b\"c\n", ',', "t"); },
              ThrowsMessage<DataError>(HasSubstr("t: line 2: expected a delimiter")));
}

}  // namespace
}  // namespace precast::data
