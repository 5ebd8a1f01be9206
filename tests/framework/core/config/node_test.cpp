#include "framework/core/config/node.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

using Kind = ConfigNode::Kind;
using test::Names;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ParseYaml : public ::testing::Test {
 protected:
  ConfigNode parse(const std::string& text) {
    diagnostics_ = {};
    return parse_yaml(text, "r.yaml", diagnostics_);
  }
  /// The error messages for `text`.
  const std::vector<std::string>& errors(const std::string& text) {
    static_cast<void>(parse(text));
    return diagnostics_.errors();
  }
  Diagnostics diagnostics_;
};

TEST_F(ParseYaml, KeepsKindsTextAndPlaces) {
  const ConfigNode top = parse("lr:\n  peak: 5e-5\nlist: [1, 'two']\nnone: ~\nempty:\n");
  EXPECT_THAT(diagnostics_.errors(), IsEmpty());
  const ConfigNode* peak = top.find("lr")->find("peak");
  EXPECT_EQ(peak->scalar, "5e-5");
  EXPECT_EQ(peak->origin.text(), "r.yaml:2:9");
  EXPECT_EQ(top.find("list")->kind, Kind::list);
  EXPECT_EQ(top.find("list")->items[1].scalar, "two");
  EXPECT_EQ(top.find("none")->kind, Kind::null);
  EXPECT_EQ(top.find("empty")->kind, Kind::null);
  EXPECT_EQ(top.find("other"), nullptr);
  EXPECT_EQ(top.entries[1].key_origin.line, 3);
}

TEST_F(ParseYaml, TakesAnEmptyDocumentAsAnEmptyMap) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "~\n"}) {
    const ConfigNode top = parse(text);
    EXPECT_THAT(diagnostics_.errors(), IsEmpty()) << text;
    EXPECT_EQ(top.kind, Kind::map) << text;
    EXPECT_THAT(top.entries, IsEmpty()) << text;
  }
}

TEST_F(ParseYaml, ReportsADuplicateKeyWithBothLines) {
  EXPECT_THAT(errors("a: 1\nb: 2\na: 3\n"), ElementsAre(Names("r.yaml:3:1", "a", "line 1")));
  EXPECT_THAT(errors("data:\n  order: 1\n  order: 2\n"),
              ElementsAre(Names("r.yaml:3:3", "data.order", "line 2")));
}

TEST_F(ParseYaml, RefusesATopThatIsNoMap) {
  EXPECT_THAT(errors("- 1\n- 2\n"), ElementsAre(Names("r.yaml:1:1", "map")));
  EXPECT_THAT(errors("just text\n"), ElementsAre(Names("r.yaml:1:1", "map")));
}

TEST_F(ParseYaml, RefusesSeveralDocuments) {
  EXPECT_THAT(errors("a: 1\n---\nb: 2\n"), ElementsAre(Names("r.yaml:2:1", "YAML")));
}

TEST_F(ParseYaml, RefusesKeysThatAreNoNames) {
  EXPECT_THAT(errors("[1, 2]: x\n"), ElementsAre(Names("r.yaml:1:1", "key")));
  EXPECT_THAT(errors("{a: 1}: x\n"), ElementsAre(Names("r.yaml:1:1", "key")));
}

TEST_F(ParseYaml, NamesThePlaceOfASyntaxError) {
  EXPECT_THAT(errors("a: 1\nb: [1, 2\nc: 3\n"), ElementsAre(Names("r.yaml:3:2", "YAML")));
  EXPECT_THAT(errors("a: 1\n\tb: 2\n"), ElementsAre(Names("r.yaml:2:1", "YAML")));
  EXPECT_THAT(errors("a: *nowhere\n"), ElementsAre(Names("r.yaml:1:4", "YAML")));
}

TEST_F(ParseYaml, StopsAtAnAliasBomb) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text += fmt::format("a{0}: &a{0} [", i);
    for (int k = 0; k < 10; ++k) text += fmt::format("*a{}{}", i - 1, k < 9 ? ", " : "]\n");
  }
  EXPECT_THAT(errors(text), ElementsAre(Names("r.yaml", 100000)));
}

TEST_F(ParseYaml, StopsAtDeepNesting) {
  EXPECT_THAT(errors("a: " + std::string(40, '[') + std::string(40, ']')),
              ElementsAre(Names("r.yaml:1:36", 32)));
  EXPECT_THAT(errors("a: " + std::string(200'000, '[')), ElementsAre(HasSubstr("r.yaml")));
  EXPECT_THAT(errors(std::string(200'000, '{')), ElementsAre(HasSubstr("r.yaml")));
}

TEST_F(ParseYaml, TakesAMapOfManyKeysInTime) {
  std::string text;
  for (int i = 0; i < 90'000; ++i) text += fmt::format("key_of_some_length_{}: 1\n", i);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse(text).entries.size(), 90'000U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_F(ParseYaml, RefusesWhatIsNotUtf8AndNamesTheByte) {
  EXPECT_THAT(errors("a: \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBF\n"), IsEmpty());
  for (const char* wrong :
       {"\xFF", "\x80", "\xC3", "\xC3(", "\xC0\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"}) {
    const std::string byte = fmt::format("{:02x}", static_cast<unsigned char>(wrong[0]));
    EXPECT_THAT(errors(fmt::format("a: 1\nb: x{}\n", wrong)),
                ElementsAre(Names("r.yaml:2:5", "UTF-8", "0x" + byte)));
  }
  for (const char* escaped :
       {"a: \"\\N\"\n", "a: \"\\_\"\n", "a: {\"\\_\": 1}\n", "a: [\"\\N\"]\n"}) {
    EXPECT_THAT(errors(escaped), ElementsAre(Names("r.yaml:1", "\\N", "\\_"))) << escaped;
  }
  Diagnostics diagnostics;
  static_cast<void>(parse_override("\xFF", {"command line"}, diagnostics));
  EXPECT_THAT(diagnostics.errors(), ElementsAre(Names("command line", "UTF-8", "0xff")));
}

TEST_F(ParseYaml, SurvivesEveryChangedByte) {
  const std::string good =
      "lr:\n  lr: 0.5  # peak\n  list: [1, 2.5]\na: {b: \"c\\n\", d: 'e'}\nf: &x ~\ng: *x\n";
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(value);
      static_cast<void>(parse(damaged));
    }
    static_cast<void>(parse(good.substr(0, i)));
  }
}

TEST(ParseYamlFile, NamesTheFileInMessages) {
  const test::TemporaryFolder folder;
  write_file(folder / "x.yaml", "a: 1\na: 2\n");
  Diagnostics diagnostics;
  static_cast<void>(parse_yaml_file(folder / "x.yaml", diagnostics));
  EXPECT_THAT(diagnostics.errors(), ElementsAre(HasSubstr((folder / "x.yaml").string() + ":2:1")));
  EXPECT_THROW(static_cast<void>(parse_yaml_file(folder / "none.yaml", diagnostics)), IoError);
}

TEST(ParseOverride, TakesScalarsAsTheyAreWritten) {
  Diagnostics diagnostics;
  const Origin origin{"command line", 0, 0};
  for (const char* text : {"0.5", "-0.5", "a: b", "", "*x", "true", "# no comment", "'quoted'"}) {
    const ConfigNode node = parse_override(text, origin, diagnostics);
    EXPECT_EQ(node.kind, Kind::scalar);
    EXPECT_EQ(node.scalar, text);
    EXPECT_EQ(node.origin.text(), "command line");
  }
  EXPECT_THAT(diagnostics.errors(), IsEmpty());
}

TEST(ParseOverride, RefusesWhatFollowsAListOrMap) {
  for (const char* text : {"[normalize] junk", "{a: 1} b", "[1] [2]", "[1], 2", "[1]]", "{} {"}) {
    Diagnostics diagnostics;
    static_cast<void>(parse_override(text, {"command line", 0, 0}, diagnostics));
    EXPECT_THAT(diagnostics.errors(), ElementsAre(HasSubstr(text))) << text;
  }
  Diagnostics diagnostics;
  EXPECT_EQ(parse_override("[1] # one", {"command line", 0, 0}, diagnostics).items.size(), 1U);
  EXPECT_THAT(diagnostics.errors(), IsEmpty());
}

TEST(ParseOverride, TakesListsAndMaps) {
  Diagnostics diagnostics;
  const Origin origin{"command line", 0, 0};
  EXPECT_EQ(parse_override("[1, 2]", origin, diagnostics).items.size(), 2U);
  EXPECT_EQ(parse_override("{a: {b: 1}}", origin, diagnostics).find("a")->find("b")->scalar, "1");
  EXPECT_THAT(diagnostics.errors(), IsEmpty());
  static_cast<void>(parse_override("[1, 2", origin, diagnostics));
  EXPECT_THAT(diagnostics.errors(), ElementsAre(Names("command line", "'[1, 2'", "YAML")));
}

TEST(ConfigNode, IsShownAsAUserWouldWriteIt) {
  Diagnostics diagnostics;
  const ConfigNode top =
      parse_yaml("a: [1, 'x y', {b: ~}]\nlong: " + std::string(90, 'z') + "\n", "r", diagnostics);
  EXPECT_EQ(top.find("a")->text(), "[1, \"x y\", {b: null}]");
  EXPECT_EQ(top.find("a")->items[0].text(), "'1'");
  EXPECT_EQ(top.find("long")->text().size(), 63U);
  EXPECT_EQ(ConfigNode{}.text(), "nothing");
}

TEST(Diagnostics, ThrowsAllErrorsAtOnce) {
  Diagnostics diagnostics;
  EXPECT_NO_THROW(diagnostics.throw_if_errors());
  diagnostics.warning({"r", 1, 1}, "a", "old");
  EXPECT_NO_THROW(diagnostics.throw_if_errors());
  diagnostics.error({"r", 2, 3}, "b", "wrong");
  diagnostics.error({"command line", 0, 0}, "", "also wrong");
  EXPECT_THAT(diagnostics.warnings(), ElementsAre("r:1:1: a: old"));
  try {
    diagnostics.throw_if_errors();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "r:2:3: b: wrong\ncommand line: also wrong");
  }
}

TEST(Diagnostics, ErrorsThatHavePositionsKeepOnlyThese) {
  Diagnostics options;
  options.error({"r", 2, 3}, "b", "wrong");
  options.error({"r", 4, 1}, "c", "also wrong");
  Diagnostics diagnostics;
  try {
    options.throw_if_errors();
    FAIL();
  } catch (const ConfigError& error) {
    diagnostics.error({"r", 0, 0}, "a", error);
  }
  diagnostics.error({"r", 1, 1}, "a", ConfigError("no position"));
  EXPECT_THAT(diagnostics.errors(),
              ElementsAre("r:2:3: b: wrong\nr:4:1: c: also wrong", "r:1:1: a: no position"));
}

}  // namespace
}  // namespace precast
