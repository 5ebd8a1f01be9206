#include "data/sources/braces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"

namespace precast::data {
namespace {

using testing::ElementsAre;

TEST(ExpandBraces, CountsWithTheDigitsOfTheFirstAndListsCombinations) {
  EXPECT_THAT(expand_braces("plain.tar"), ElementsAre("plain.tar"));
  EXPECT_THAT(expand_braces("a{08..11}.tar"),
              ElementsAre("a08.tar", "a09.tar", "a10.tar", "a11.tar"));
  EXPECT_THAT(expand_braces("{9..10}"), ElementsAre("9", "10"));
  EXPECT_THAT(expand_braces("{a,b}-{0..1}"), ElementsAre("a-0", "a-1", "b-0", "b-1"));
  EXPECT_THAT(expand_braces("x{,y}"), ElementsAre("x", "xy"));
  EXPECT_THAT(expand_braces("{18446744073709551614..18446744073709551615}"),
              ElementsAre("18446744073709551614", "18446744073709551615"));
  for (const char* wrong : {"{0..}", "{2..1}", "{0..9", "{a}", "{a..b}", "{-1..2}",
                            "{0..99999999999}", "{0..999}{0..9999}"}) {
    EXPECT_THROW((void)expand_braces(wrong), ConfigError) << wrong;
  }
}

}  // namespace
}  // namespace precast::data
