#include "data/order/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using ::testing::ElementsAre;

/// Ten samples: label = i % 3, weight = i.
class FilterTest : public ::testing::Test {
 protected:
  FilterTest() {
    test::write_made_beton(folder_ / "x.beton",
                           {.samples = 10, .width = 1, .height = 1, .classes = 3});
    reader_.emplace(folder_ / "x.beton");
  }
  [[nodiscard]] std::vector<std::uint64_t> kept(std::string_view expression) const {
    return SampleFilter(expression).select(*reader_, 0, 10);
  }
  static std::string error(std::string_view expression) {
    try {
      SampleFilter filter(expression);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "none";
  }

  test::TemporaryFolder folder_;
  std::optional<BetonReader> reader_;
};

TEST_F(FilterTest, ComparesIntegersAndFloats) {
  EXPECT_THAT(kept("label < 1"), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(kept("label<=0"), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(kept("weight > 7.5"), ElementsAre(8, 9));
  EXPECT_THAT(kept("weight >= 8e0"), ElementsAre(8, 9));
  EXPECT_THAT(kept("weight == +4"), ElementsAre(4));
  EXPECT_THAT(kept("label != 2").size(), 7U);
  EXPECT_THAT(kept("weight > -1").size(), 10U);
}

/// Three samples: weight 0.1, 0.3, 0.7; id 2^63 - 2, 2^63 - 1, 2^53 + 1.
class ExactFilterTest : public ::testing::Test {
 protected:
  ExactFilterTest() {
    BetonWriter writer(path_, {{"weight", FieldType::floating}, {"id", FieldType::integer}}, 3, {});
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    constexpr double kWeights[] = {0.1, 0.3, 0.7};
    constexpr std::int64_t kIds[] = {kMax - 1, kMax, (std::int64_t{1} << 53) + 1};
    for (std::size_t i = 0; i < 3; ++i) {
      std::array<EncodedValue, 2> values;
      for (EncodedValue& value : values) value.metadata.resize(8);
      store(values[0].metadata.data(), kWeights[i]);
      store(values[1].metadata.data(), kIds[i]);
      writer.add(values);
    }
    writer.finish();
    reader_.emplace(path_);
  }
  [[nodiscard]] std::vector<std::uint64_t> kept(std::string_view expression) const {
    return SampleFilter(expression).select(*reader_, 0, 3);
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.beton";
  std::optional<BetonReader> reader_;
};

TEST_F(ExactFilterTest, ADecimalIsEqualToTheStoredDecimal) {
  EXPECT_THAT(kept("weight == 0.1"), ElementsAre(0));
  EXPECT_THAT(kept("weight != 0.3"), ElementsAre(0, 2));
  EXPECT_THAT(kept("weight < 0.3"), ElementsAre(0));
  EXPECT_THAT(kept("weight <= 0.3"), ElementsAre(0, 1));
  EXPECT_THAT(kept("weight > 0.3"), ElementsAre(2));
  EXPECT_THAT(kept("weight >= 0.7"), ElementsAre(2));
  EXPECT_THAT(kept("weight in [0.7, +0.1]"), ElementsAre(0, 2));
  EXPECT_THAT(kept("weight not in [7e-1, 0.1]"), ElementsAre(1));
  EXPECT_THAT(kept("weight > -1e999 and weight < 1e999"), ElementsAre(0, 1, 2));
}

TEST_F(ExactFilterTest, LargeIntegersAreNotRounded) {
  EXPECT_THAT(kept("id == 9223372036854775807"), ElementsAre(1));
  EXPECT_THAT(kept("id != 9223372036854775807"), ElementsAre(0, 2));
  EXPECT_THAT(kept("id < 9223372036854775807"), ElementsAre(0, 2));
  EXPECT_THAT(kept("id <= 9223372036854775806"), ElementsAre(0, 2));
  EXPECT_THAT(kept("id > 9223372036854775806"), ElementsAre(1));
  EXPECT_THAT(kept("id >= 9223372036854775807"), ElementsAre(1));
  EXPECT_THAT(kept("id in [9223372036854775806, 9007199254740993]"), ElementsAre(0, 2));
  EXPECT_THAT(kept("id == 9007199254740992"), ElementsAre());
}

TEST_F(FilterTest, FindsValuesInLists) {
  EXPECT_THAT(kept("weight in [3, 1, 100]"), ElementsAre(1, 3));
  EXPECT_THAT(kept("label not in [0,1]"), ElementsAre(2, 5, 8));
}

TEST_F(FilterTest, ListsMayStandInRoundParentheses) {
  EXPECT_THAT(kept("weight in (3, 1)"), ElementsAre(1, 3));
  EXPECT_THAT(kept("(weight in (3, 1) and label == 0)"), ElementsAre(3));
  EXPECT_THAT(error("label in (1, 2]"), Names("','", "')'", "']'", "column 15"));
}

TEST_F(FilterTest, KnowsSizesAndModesOfImages) {
  EXPECT_THAT(kept("width == 1 and height == 1 and weight < 2"), ElementsAre(0, 1));
  EXPECT_THAT(kept("image.width > 1 or image.height > 1"), ElementsAre());
  EXPECT_THAT(kept("mode == raw and bytes == 3").size(), 10U);
  EXPECT_THAT(kept("mode in [jpg]"), ElementsAre());
  for (const std::string expression : {"mode == 'jpg'", "image.mode in [raw, \"jpg\"]"}) {
    EXPECT_THAT([&] { (void)kept(expression); },
                testing::ThrowsMessage<ConfigError>(Names("filter", "jpg", "raw", "'jpg'")));
  }
  EXPECT_THROW(static_cast<void>(kept("label == raw")), ConfigError);
  EXPECT_THROW(static_cast<void>(kept("label.bytes > 0")), ConfigError);
  EXPECT_THROW(static_cast<void>(kept("image.depth > 0")), ConfigError);
  EXPECT_THROW(static_cast<void>(kept("picture.width > 0")), ConfigError);
}

TEST_F(FilterTest, AnyNameCanStandInDoubleQuotes) {
  const std::filesystem::path path = folder_ / "names.beton";
  {
    BetonWriter writer(path, {{"class id", FieldType::integer}, {"and", FieldType::integer}}, 3,
                       {});
    for (std::int64_t i = 0; i < 3; ++i) {
      std::array<EncodedValue, 2> values;
      for (EncodedValue& value : values) {
        value.metadata.resize(sizeof i);
        store(value.metadata.data(), i);
      }
      writer.add(values);
    }
    writer.finish();
  }
  const BetonReader reader(path);
  EXPECT_THAT(
      SampleFilter(R"("class id" == 1 or "and">1 and not "class id" in [0])").select(reader, 0, 3),
      ElementsAre(1, 2));
  EXPECT_THAT(kept(R"("label" == 0 and "image.width" == 1 and "mode" == raw)").size(), 4U);
}

TEST_F(FilterTest, NotBindsTighterThanAndAndAndTighterThanOr) {
  EXPECT_THAT(kept("label == 0 and weight > 5 or weight == 1"), ElementsAre(1, 6, 9));
  EXPECT_THAT(kept("label == 0 and (weight > 5 or weight == 1)"), ElementsAre(6, 9));
  EXPECT_THAT(kept("not label == 0 and weight < 3"), ElementsAre(1, 2));
  EXPECT_THAT(kept("not (label == 0 and weight < 3)").size(), 9U);
}

TEST_F(FilterTest, ThereMayBeAnyNumberOfTerms) {
  // With a recursive call for each term, this would overflow the stack.
  const auto joined = [](std::string_view word, std::string_view term) {
    std::string text = "weight == 3";
    for (int i = 0; i < 200'000; ++i) text.append(word).append(term);
    return text;
  };
  EXPECT_THAT(kept(joined(" or ", "weight==7")), ElementsAre(3, 7));
  EXPECT_THAT(kept(joined(" and ", "weight<9")), ElementsAre(3));
  EXPECT_THAT(kept(joined(" and ", "weight<9") + " or label == 2"), ElementsAre(2, 3, 5, 8));
}

TEST_F(FilterTest, ChoosesWithinItsRange) {
  EXPECT_THAT(SampleFilter("label == 0").select(*reader_, 1, 7), ElementsAre(3, 6));
}

/// Labels 0 to 3; classes 1 and 3 have the same name.
class ClassFilterTest : public ::testing::Test {
 protected:
  ClassFilterTest() {
    const std::vector<std::string> names = {"cats", "green apples", "dogs", "green apples"};
    BetonLayout layout;
    layout.info = file_info_text({.classes = {{"label", names}}, .written = {}});
    BetonWriter writer(path_, {{"label", FieldType::integer}, {"id", FieldType::integer}}, 4,
                       layout);
    for (std::int64_t i = 0; i < 4; ++i) {
      std::array<EncodedValue, 2> values;
      for (EncodedValue& value : values) {
        value.metadata.resize(sizeof i);
        store(value.metadata.data(), i);
      }
      writer.add(values);
    }
    writer.finish();
    reader_.emplace(path_);
  }
  [[nodiscard]] std::vector<std::uint64_t> kept(std::string_view expression) const {
    return SampleFilter(expression).select(*reader_, 0, 4);
  }
  [[nodiscard]] auto keeping(std::string_view expression) const {
    return [=, this] { (void)kept(expression); };
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.beton";
  std::optional<BetonReader> reader_;
};

TEST_F(ClassFilterTest, ClassesAreNamedInQuotes) {
  EXPECT_THAT(kept(R"(label == "dogs")"), ElementsAre(2));
  EXPECT_THAT(kept("label == 'green apples'"), ElementsAre(1, 3));
  EXPECT_THAT(kept("label != 'green apples'"), ElementsAre(0, 2));
  EXPECT_THAT(kept(R"(label in ["cats", 3] or not label < 3)"), ElementsAre(0, 3));
  EXPECT_THAT(kept(R"(label not in ("cats", "dogs"))"), ElementsAre(1, 3));
}

TEST_F(ClassFilterTest, AnUnknownClassIsRefusedWithTheNearest) {
  EXPECT_THAT(keeping("label == 'dosg'"),
              testing::ThrowsMessage<ConfigError>(Names("filter", path_, "'dosg'", "'dogs'")));
  EXPECT_THAT(keeping("id == 'dogs'"),
              testing::ThrowsMessage<ConfigError>(Names("filter", path_, "'dogs'")));
  EXPECT_THAT(keeping("width == 'dogs'"), testing::Throws<ConfigError>());
}

TEST_F(ClassFilterTest, AnIntFieldMayBeCalledMode) {
  const std::filesystem::path path = folder_ / "mode.beton";
  {
    const std::vector<std::string> names = {"day", "jpg"};
    BetonLayout layout;
    layout.info = file_info_text({.classes = {{"mode", names}}, .written = {}});
    BetonWriter writer(path, {{"mode", FieldType::integer}}, 2, layout);
    for (std::int64_t i = 0; i < 2; ++i) {
      std::array<EncodedValue, 1> values;
      values[0].metadata.resize(sizeof i);
      store(values[0].metadata.data(), i);
      writer.add(values);
    }
    writer.finish();
  }
  const BetonReader reader(path);
  const auto found = [&](const std::string& expression) {
    return SampleFilter(expression).select(reader, 0, 2);
  };
  EXPECT_THAT(found("mode == 'day'"), ElementsAre(0));
  EXPECT_THAT(found("mode in [\"jpg\"]"), ElementsAre(1));
  EXPECT_THAT(found("mode > 0"), ElementsAre(1));
  EXPECT_THROW(static_cast<void>(found("mode == jpg")), ConfigError);
}

TEST_F(FilterTest, SaysWhatWasExpectedWhere) {
  EXPECT_THAT(error(""), Names("column 1", "''"));
  EXPECT_THAT(error("label <"), Names("column 8", "'label <'"));
  EXPECT_THAT(error("label = 3"), Names("< <= > >= == !=", "'in'", "'not in'", "'='", "column 7"));
  EXPECT_THAT(error("3 < label"), Names("'3'", "column 1"));
  EXPECT_THAT(error("label in 3"), Names("'('", "'['", "'3'", "column 10"));
  EXPECT_THAT(error("label < \"dogs\""), Names("a number", "column 9"));
  EXPECT_THAT(error("image.mode in [jpeg]"), Names("jpg", "raw", "'jpeg'", "column 16"));
  EXPECT_THAT(error("\"label == 1"), Names("'\"'", "column 1"));
  EXPECT_THAT(error("\"\" == 1"), Names("'\"\"'", "column 1"));
  EXPECT_THAT(error("mode == jpeg"), Names("jpg", "raw", "'jpeg'", "column 9"));
  EXPECT_THAT(error("label in []"), Names("']'", "column 11"));
  EXPECT_THAT(error("label in [1 2]"), Names("','", "']'", "'2'", "column 13"));
  EXPECT_THAT(error("label not 3"), Names("'in'", "'3'", "column 11"));
  EXPECT_THAT(error("(label < 3"), Names("')'", "column 11"));
  EXPECT_THAT(error("label < 3 label"), Names("'and'", "'or'", "'label'", "column 11"));
  EXPECT_THAT(error("label < 1x"), Names("'1x'", "column 9"));
  EXPECT_EQ(error("label < 1e999"), "none");
  EXPECT_THAT(error("label < 1e99999"), Names("'1e99999'", "column 9"));
  for (const std::string number : {"-nan", "+nan", "-inf", "+infinity"}) {
    EXPECT_THAT(error("label < " + number), Names("'" + number + "'", "column 9"));
    EXPECT_THAT(error("label in [2, " + number + "]"), Names("'" + number + "'", "column 14"));
  }
  EXPECT_THAT(error("label < 3 & 1"), Names("'&'", "column 11"));
  EXPECT_THAT(error(std::string(5000, '(')), Names(100, "column 102"));
}

TEST_F(FilterTest, FieldsMustBeNumbersOfTheFile) {
  EXPECT_THROW(static_cast<void>(kept("image < 3")), ConfigError);
  try {
    static_cast<void>(kept("lable < 3"));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Names(folder_ / "x.beton", "'lable'", "'label'"));
  }
}

}  // namespace
}  // namespace precast::data
