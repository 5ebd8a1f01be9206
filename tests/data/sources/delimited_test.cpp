#include "data/sources/delimited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::ThrowsMessage;

std::vector<std::vector<std::string>> rows_of(std::string_view text) {
  DelimitedReader reader(text, ',', "t");
  std::vector<std::vector<std::string>> rows(1);
  while (reader.next(rows.back())) rows.emplace_back();
  rows.pop_back();
  return rows;
}

TEST(DelimitedReader, QuotesHoldDelimitersLinesAndQuotes) {
  const auto rows = rows_of("a,b\r\n\"x,\"\"y\"\"\nz\",\n\n,\"\"\nlast\r,1");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_THAT(rows[0], ElementsAre("a", "b"));
  EXPECT_THAT(rows[1], ElementsAre("x,\"y\"\nz", ""));
  EXPECT_THAT(rows[2], ElementsAre("", ""));
  EXPECT_THAT(rows[3], ElementsAre("last\r", "1"));
  EXPECT_THAT([] { (void)rows_of("a\n\"b\nc"); }, ThrowsMessage<DataError>(Names("t", "line 2")));
  EXPECT_THAT([] { (void)rows_of("a\n\"b\"c\n"); }, ThrowsMessage<DataError>(Names("t", "line 2")));
}

TEST(DelimitedReader, RowsAreFoundAgainByTheirPlace) {
  const std::string_view text = "\n\"a\n\",b\r\n\r\n,\nlast";
  DelimitedReader reader(text, ',', "t");
  std::vector<std::string> row;
  for (const std::size_t offset : {1U, 11U, 13U}) {
    ASSERT_TRUE(reader.next(row));
    EXPECT_EQ(reader.offset(), offset);
    std::vector<std::string> again = {"of", "another", "row"};
    EXPECT_TRUE(DelimitedReader(text.substr(offset), ',', "t").next(again));
    EXPECT_EQ(again, row);
  }
  EXPECT_FALSE(reader.next(row));
}

}  // namespace
}  // namespace precast::data
