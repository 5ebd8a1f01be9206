#include "data/beton/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace precast::data {
namespace {

TEST(IsJson, TakesWhatPythonsJsonWrites) {
  for (const char* text : {R"({"a": [1, 2.5e3, null]})", "NaN", "[-Infinity, Infinity, NaN]",
                           R"(["\ud83d", "\uDC00", "\u00e9"])", R"({"x": NaN, "y": "\"NaN\\"})"})
    EXPECT_TRUE(is_json(text)) << text;
}

TEST(IsJson, RefusesWhatNobodyWrites) {
  for (const char* text :
       {"", "nan", "NaNNaN", "[1 NaN]", "{NaN: 1}", R"("\ud83)", R"("\)", "--Infinity",
        "[1Infinity]", "-NaN", R"("\ud8zz")", "\xff", R"({"a": 1)", "NaN 1"})
    EXPECT_FALSE(is_json(text)) << text;
}

TEST(JsonText, EndsAtTheFirstZeroByte) {
  const std::string value("[1]\0 2", 6);
  EXPECT_EQ(json_text(std::as_bytes(std::span(value))), "[1]");
  EXPECT_EQ(json_text({}), "");
}

}  // namespace
}  // namespace precast::data
