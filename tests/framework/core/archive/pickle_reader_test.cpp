#include "framework/core/archive/pickle_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "framework/core/archive/zip_file.h"
#include "framework/core/error.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/bytes.h"
#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using namespace std::string_literals;
using Kind = PickleValue::Kind;
using test::Names;

std::string problem(std::string_view pickle) {
  try {
    static_cast<void>(parse_pickle(bytes_of(pickle), "p"));
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "accepted";
}

std::string repeat(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST(PickleReader, ReadsIntegersOfEveryWidth) {
  // (1, 513, -2, 2**31 as LONG1, -256 as LONG1, 0 as empty LONG1)
  const std::string pickle =
      "\x80\x02(K\x01M\x01\x02J\xFE\xFF\xFF\xFF\x8A\x05\x00\x00\x00\x80\x00\x8A\x02\x00\xFF\x8A\x00t."s;
  const Pickle parsed = parse_pickle(bytes_of(pickle), "p");
  std::vector<std::int64_t> values;
  for (const PickleValue* item : parsed.top->items) values.push_back(item->integer);
  EXPECT_THAT(values, ::testing::ElementsAre(1, 513, -2, 2147483648, -256, 0));
}

TEST(PickleReader, FindsTheLastValueOfAKey) {
  const std::string pickle = "\x80\x02}(X\1\0\0\0aK\1X\1\0\0\0aK\2u."s;
  const Pickle parsed = parse_pickle(bytes_of(pickle), "p");
  EXPECT_EQ(parsed.top->find("a")->integer, 2);
  EXPECT_EQ(parsed.top->find("b"), nullptr);
}

TEST(PickleReader, RunsNothing) {
  EXPECT_THAT(problem("\x80\x02"
                      "cos\nsystem\nX\x04\0\0\0true\x85R."s),
              Names("'os.system'"));
  EXPECT_THAT(problem("\x80\x02"
                      "cposix\nsystem\n(X\x04\0\0\0truetR."s),
              Names("'posix.system'"));
  EXPECT_THAT(problem("\x80\x02"
                      "c__builtin__\neval\nX\x01\0\0\0001\x85R."s),
              Names("'__builtin__.eval'"));
  EXPECT_THAT(problem("\x80\x04\x8C\x08"
                      "builtins\x8C\x07getattr\x93."s),
              Names("'builtins.getattr'"));
  EXPECT_THAT(problem("\x80\x02"
                      "ctorch.hub\nload\n)R."s),
              Names("'torch.hub.load'"));
  EXPECT_THAT(problem("\x80\x02"
                      "ctorch\nFloatStorage\nK\x01\x85R."s),
              Names("byte 26"));
  EXPECT_THAT(problem("\x80\x02"
                      "ccollections\nOrderedDict\n)\x81."s),
              Names("byte 29"));
  EXPECT_THAT(problem("\x80\x02"
                      "(ios\nsystem\n."s),
              Names("0x69", "byte 4"));
}

TEST(PickleReader, RefusesMalformedPrograms) {
  const struct {
    std::string pickle;
    std::vector<std::string> facts;
  } cases[] = {
      {"", {"1", "byte 0"}},
      {"\x80\x02", {"1", "byte 2"}},
      {"\x80\x02.", {"stack", "byte 3"}},
      {"\x80\x01N.", {"protocol", "1", "2", "5"}},
      {"\x80\x02NN.", {"byte 5"}},
      {"\x80\x02(N.", {"byte 5"}},
      {"\x80\x02(.", {"stack", "byte 4"}},
      {"\x80\x02N(\x85.", {"stack", "byte 5"}},
      {"\x80\x02t.", {"mark", "byte 3"}},
      {"\x80\x02h\x05.", {"memo", "5", "byte 4"}},
      {"\x80\x02q\x05.", {"stack", "byte 4"}},
      {"\x80\x02Nr\xFF\xFF\xFF\xFF.", {"memo", "4294967295", "byte 8"}},
      {"\x80\x02NNs.", {"stack", "byte 5"}},
      {"\x80\x02N(NNu.", {"list", "dict", "byte 7"}},
      {"\x80\x02}(Nu.", {"list", "dict", "byte 6"}},
      {"\x80\x02X\xFF\xFF\xFF\xFFshort.", {"4294967295", "6", "byte 7"}},
      {"\x80\x02"
       "B\xFF\xFF\xFF\x7Fshort.",
       {"2147483647", "6", "byte 7"}},
      {"\x80\x02"
       "cno newline",
       {"1", "0", "byte 13"}},
      {"\x80\x02N}b.", {"byte 5"}},
      {"\x80\x02NQ.", {"storage", "byte 4"}},
      {"\x80\x02)Q.", {"storage", "byte 4"}},
      {"\x80\x02N)R.", {"function", "byte 5"}},
      {"\x80\x02"
       "ctorch._utils\n_rebuild_tensor_v2\n)R.",
       {"tensor", "byte 37"}},
      {"\x80\x02"
       "ctorch._utils\n_rebuild_parameter\n)R.",
       {"byte 37"}},
      {"\x80\x04\x95\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFN.", {"18446744073709551615", "2", "byte 11"}},
      {"\x80\x02\x8B\xFF\xFF\xFF\x7F", {"0x8b", "byte 3"}},
  };
  for (const auto& [pickle, facts] : cases) {
    EXPECT_THAT(problem(pickle), test::NamesMatcher(facts)) << ::testing::PrintToString(pickle);
  }
}

TEST(PickleReader, LimitsDepthStackAndValues) {
  EXPECT_THAT(problem("\x80\x02" + repeat("(", 1'000'000)), Names(1001, 1000));
  EXPECT_THAT(problem("\x80\x02" + repeat("N", 1'500'000) + "."), Names(1000001, 1000000));
  EXPECT_THAT(problem("\x80\x02" + repeat("N0", 2'500'000) + "."), Names(2000000));
  // Each of the nested tuples counts as one value, so their number is below the limit. Freeing them
  // must not recurse.
  EXPECT_EQ(problem("\x80\x02]" + repeat("\x85", 1'000'000) + "."), "accepted");
}

TEST(PickleReader, CountsTheSizesOfTensors) {
  // Builds one tensor with 64 dimensions many times. Each call needs six bytes of pickle, but a
  // kilobyte of memory.
  const std::string sizes = '(' + repeat("K\1", 64) + 't';
  std::string pickle = "\x80\x02";
  pickle += "ctorch._utils\n_rebuild_tensor_v2\nq\0"s;
  pickle += "((U\x07storagectorch\nFloatStorage\nU\0010U\3cpuK\1tQK\0"s + sizes + sizes;
  pickle += "\x89}tq\1";
  const auto repeated = [&](std::size_t count) {
    return problem(pickle + "0" + repeat("0h\0h\1R"s, count) + ".");
  };
  EXPECT_EQ(repeated(1000), "accepted");
  EXPECT_THAT(repeated(16'000), Names(2000000));
}

TEST(PickleReader, RefusesTensorsWithANegativeOrConjugateBit) {
  const auto with_metadata = [](const std::string& metadata) {
    return problem(
        "\x80\x02"
        "ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\001"s +
        "0U\3cpuK\1tQK\0(K\1t(K\1t\x89}"s + metadata + "tR.");
  };
  for (const char* accepted : {"", "N", "}", "}(u", "}U\5other\x88s"})
    EXPECT_EQ(with_metadata(accepted), "accepted") << accepted;
  EXPECT_THAT(with_metadata("}U\3neg\x88s"), Names("neg", ".resolve_neg()"));
  EXPECT_THAT(with_metadata("}(U\5other\x88U\4conj\x88u"), Names("conj", ".resolve_conj()"));
  EXPECT_THAT(with_metadata("K\1"), Names("dict", "metadata"));
}

TEST(PickleReader, SharesInsteadOfCopying) {
  // Thirty levels; each contains the previous level twice. Copying them would give 2^30 leaves.
  std::string pickle = "\x80\x02)q\0"s;
  for (int level = 0; level < 30; ++level) pickle += "0h\0h\0\x86q\0"s;
  EXPECT_EQ(problem(pickle + "."), "accepted");
  // A list that contains itself.
  EXPECT_EQ(problem("\x80\x02]q\0h\0a."s), "accepted");
}

TEST(PickleReader, SurvivesEveryChangedByteOfRealPickles) {
  for (const char* name : {"checkpoint", "checkpoint_protocol4", "parameters"}) {
    const auto file = test::golden_file(name);
    const ZipReader zip(file, name);
    const auto pickle = zip.read(std::string(name) + "/data.pkl");
    const auto parse = [](std::span<const std::byte> bytes) {
      return std::to_string(parse_pickle(bytes, "p").values.size());
    };
    test::expect_refused_or_intact(pickle, "", parse);
    test::expect_refused_at_every_cut(pickle, parse);
  }
}

TEST(PickleReader, SurvivesRandomPrograms) {
  std::mt19937 random(7);
  const std::string alphabet =
      "\x80\x02(t)]}aesuNKMJXcRbQqhrj\x85\x86\x87\x88\x89\x8a\x8c\x93\x94.\0\1"s;
  std::size_t accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string pickle;
    const std::size_t size = random() % 24;
    for (std::size_t k = 0; k < size; ++k) pickle += alphabet[random() % alphabet.size()];
    if (problem(pickle) == "accepted") ++accepted;
  }
  EXPECT_GT(accepted, 0U);
}

}  // namespace
}  // namespace precast
