#include "tests/docs/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace precast::test {
namespace {

TEST(QuotedInTest, FindsBlocksWithTheirLanguageAndWithoutTheirIndent) {
  const auto quoted = quoted_in("text\n\n   ```sh\n   a\n     b\n   ```\n");
  ASSERT_EQ(quoted.size(), 1U);
  EXPECT_EQ(quoted[0].kind, Quoted::Kind::block);
  EXPECT_EQ(quoted[0].language, "sh");
  EXPECT_EQ(quoted[0].text, "a\n  b\n");
  EXPECT_EQ(quoted[0].line, 4);
}

TEST(QuotedInTest, JoinsASpanOfTwoLines) {
  const auto quoted = quoted_in("# title\n\nsay `one\ntwo` and `three`\n");
  ASSERT_EQ(quoted.size(), 2U);
  EXPECT_EQ(quoted[0].text, "one two");
  EXPECT_EQ(quoted[0].line, 3);
  EXPECT_EQ(quoted[1].text, "three");
  EXPECT_EQ(quoted[1].line, 4);
}

TEST(QuotedInTest, ReadsRowsOfTablesAlone) {
  const auto quoted = quoted_in("| `a` `b` | `c \\| d` |\n| odd ` | `e` |\n| `f` | g |\n");
  ASSERT_GE(quoted.size(), 4U);
  EXPECT_TRUE(quoted[0].first_column && quoted[1].first_column);
  EXPECT_FALSE(quoted[2].first_column);
  EXPECT_EQ(quoted[2].text, "c | d");
  EXPECT_EQ(quoted.back().text, "f");
}

TEST(AnchorsInTest, AreThoseOfGitHub) {
  EXPECT_THAT(
      anchors_in("# A `b_c` & [link](x.md): d-E?\n"
                 "text\n## Same\n```sh\n# a comment\n```\n## Same ##\n#no heading\n# same\n"),
      testing::ElementsAre("a-b_c--link-d-e", "same", "same-1", "same-2"));
}

TEST(IndentedCodeTest, FindsLinesOutsideOfFences) {
  EXPECT_THAT(indented_code("    go x\n```\n    go y\n```\n  go z\n", "go "),
              testing::ElementsAre(1));
}

}  // namespace
}  // namespace precast::test
