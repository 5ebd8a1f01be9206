#include "framework/core/parse_number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "framework/core/lower_case.h"

namespace precast {
namespace {

TEST(ParseNumberTest, ReadsNumbersOfTheType) {
  EXPECT_EQ(parse_number<int>("0"), 0);
  EXPECT_EQ(parse_number<int>("-17"), -17);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number<double>("-2.5e3"), -2500.0);
}

TEST(ParseNumberTest, ReturnsNothingForAnyOtherText) {
  for (const std::string_view text : {"", " 1", "1 ", "+1", "1.5", "0x10", "1,000", "one", "-"})
    EXPECT_EQ(parse_number<int>(text), std::nullopt) << text;
  EXPECT_EQ(parse_number<int>("2147483648"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1e999"), std::nullopt);
}

TEST(LowerCaseTest, ChangesOnlyTheLettersOfAscii) {
  EXPECT_EQ(lower_case("JPEG_2.Ä"), "jpeg_2.Ä");
  EXPECT_EQ(lower_case(""), "");
}

}  // namespace
}  // namespace precast
