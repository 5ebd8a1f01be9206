#include "framework/core/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace precast {
namespace {

TEST(Utf8Test, CountsCharacters) {
  EXPECT_EQ(count_characters(""), 0U);
  EXPECT_EQ(count_characters("a\u00e9\u20ac\U0001F431"), 4U);
}

TEST(Utf8Test, APrefixEndsBetweenTwoCharacters) {
  const std::string text = "a\u00e9\u20ac\U0001F431";  // 1, 2, 3 and 4 bytes
  const std::size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (std::size_t limit = 0; limit < std::size(ends); ++limit)
    EXPECT_EQ(utf8_prefix(text, limit), text.substr(0, ends[limit])) << limit;
}

TEST(Utf8Test, APrefixShorterThanTheFirstCharacterIsEmpty) {
  for (const std::size_t limit : {0U, 1U, 2U, 3U}) EXPECT_EQ(utf8_prefix("\U0001F431", limit), "");
}

TEST(Utf8Test, TextThatIsNotUtf8IsCutAtTheLimit) {
  const std::string text(9, '\x80');
  EXPECT_EQ(utf8_prefix(text, 6).size(), 6U);
}

}  // namespace
}  // namespace precast
