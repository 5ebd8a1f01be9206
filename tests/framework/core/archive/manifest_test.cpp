#include "framework/core/archive/manifest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/bytes.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

using test::Names;
using ::testing::ThrowsMessage;

Manifest sample() {
  return {1250, 0.7125, {{"model.safetensors", 102'400'000, 0x0123456789abcdef}, {"rng", 0, 7}}};
}

Manifest parse(std::string_view text) {
  return parse_manifest(bytes_of(text), "ckpt/manifest.json");
}

std::string problem(std::string_view text) {
  try {
    static_cast<void>(parse(text));
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ManifestTest, ComesBackAsItWasWritten) {
  Manifest manifest = sample();
  EXPECT_EQ(parse(manifest_text(manifest)), manifest);
  for (const double metric : {0.0, -0.0, 1.0, -3.5, 0.1 + 0.2, 1e-300, 1.7976931348623157e308}) {
    manifest.metric = metric;
    EXPECT_EQ(parse(manifest_text(manifest)).metric, metric);
  }
  EXPECT_EQ(parse(manifest_text({INT64_MAX, {}, {}})), (Manifest{INT64_MAX, {}, {}}));
}

TEST(ManifestTest, HoldsAsManyFilesAsItPromises) {
  Manifest manifest;
  for (std::size_t i = 0; i < kMaxManifestFiles; ++i) {
    manifest.files.push_back({fmt::format("tensor-of-a-long-name-{}", i), i, ~i});
  }
  EXPECT_EQ(parse(manifest_text(manifest)), manifest);
  manifest.files.push_back({"one-more", 0, 0});
  EXPECT_THROW(static_cast<void>(manifest_text(manifest)), std::logic_error);
}

TEST(ManifestTest, IsRefusedAtEveryCut) {
  std::string text = manifest_text(sample());
  text.pop_back();  // the final newline, which is optional
  test::expect_refused_at_every_cut(
      bytes_of(text), [](auto cut) { return manifest_text(parse_manifest(cut, "cut")); });
}

TEST(ManifestTest, WithAChangedByteIsRefusedOrTheSame) {
  const std::string text = manifest_text(sample());
  test::expect_refused_or_intact(bytes_of(text), text, [](auto damaged) {
    return manifest_text(parse_manifest(damaged, "damaged"));
  });
}

/// Each case replaces one part of a valid manifest.
TEST(ManifestTest, NamesThePlaceWhatWasExpectedAndWhatWasFound) {
  const std::string good = manifest_text(sample());
  struct Case {
    std::string_view from, to;
    std::vector<std::string> facts;
  };
  const std::string many(32'000, '7');  // a number that is too large for a double
  const std::vector<Case> cases = {
      {"\"version\": 1", "\"version\": 2", {"version", "1", "2"}},
      {"\"version\": 1", "\"version\": \"1\"", {"version", "1"}},
      {"\"version\": 1,", "", {"version", "1"}},
      {"1250", "-1", {"step", "0", "9223372036854775807", "-1"}},
      {"1250", "9223372036854775808", {"step", "9223372036854775807", "9223372036854775808"}},
      {"1250", "1e3", {"step", "9223372036854775807", "1e3"}},
      {"1250", many, {"JSON"}},
      {"1250", "null", {"step", "null"}},
      {"1250", "[]", {"step", "list"}},
      {"1250", "1251", {"xxh3_64"}},
      {"0.7125", "1e999", {"JSON"}},
      {"0.7125", "NaN", {"JSON"}},
      {"0.7125", "5", {"metric", "5"}},
      {"0.7125", "{}", {"metric", "map"}},
      {"\"metric\"", "\"step\"", {"step", "twice"}},
      {"\"metric\"", "\"files[0].name\"", {"'files[0].name'"}},
      {"\"metric\"", "\"Metric\"", {"'Metric'"}},
      {"\"metric\"", "\"metrics\"", {"metrics"}},
      {"\"rng\"", "\"../rng\"", {"files[1].name", "../rng"}},
      {"\"rng\"", "\"..\"", {"files[1].name", ".."}},
      {"\"rng\"", "\"/etc/passwd\"", {"files[1].name", "/etc/passwd"}},
      {"\"rng\"", "\"a\\u0000b\"", {"files[1].name", "a"}},
      {"\"rng\"", "\"\"", {"files[1].name"}},
      {"\"rng\"", "\"manifest.json\"", {"files[1].name", "manifest.json"}},
      {"\"rng\"", "\"model.safetensors\"", {"files[1].name", "model.safetensors"}},
      {"\"rng\"", "17", {"files[1].name", "17"}},
      {"\"name\": \"rng\"", "\"nam\": \"rng\"", {"files[1].name"}},
      {"102400000", "-102400000", {"files[0].size", "0", "-102400000"}},
      {"102400000", "102400001", {"xxh3_64"}},
      {"0123456789abcdef", "0123456789ABCDEF", {"files[0].xxh3_64", "16", "0123456789ABCDEF"}},
      {"0123456789abcdef", "0x23456789abcdef", {"files[0].xxh3_64", "0x23456789abcdef"}},
      {"0123456789abcdef", "123456789abcdef", {"files[0].xxh3_64", "123456789abcdef"}},
      {"0123456789abcdef", "0123456789abcdef0", {"files[0].xxh3_64", "0123456789abcdef0"}},
      {"\"size\": 0", "\"size\": {\"deep\": 0}", {"files[1].size", "map"}},
      {"\"size\": 0", "\"size\": 0, \"size\": 0", {"files[1].size", "twice"}},
      {"{\n \"version\"", "[{\n \"version\"", {"map"}},
      {"}\n", "} {}", {"JSON"}},
  };
  for (const Case& tested : cases) {
    std::string text = good;
    const std::size_t at = text.rfind(tested.from);
    ASSERT_NE(at, std::string::npos) << tested.from;
    const std::size_t first = text.find(tested.from);
    text.replace(tested.from == "}\n" ? at : first, tested.from.size(), tested.to);
    const std::string message = problem(text);
    EXPECT_THAT(message, Names("ckpt/manifest.json"));
    EXPECT_THAT(message, test::NamesMatcher(tested.facts)) << tested.to.substr(0, 80);
    EXPECT_LT(message.size(), 500U);
  }
}

TEST(ManifestTest, WhatIsNoManifestAtAllIsRefused) {
  EXPECT_THAT(problem(""), Names("JSON", 1));
  EXPECT_THAT(problem("[]"), Names("ckpt/manifest.json", "map", "list"));
  EXPECT_THAT(problem("5"), Names("ckpt/manifest.json", "map", 5));
  EXPECT_THAT(problem("{}"), Names("version", 1));
  EXPECT_THAT(problem("\xFF\xFE{}"), Names("JSON", "byte 1"));
  EXPECT_THAT(problem("{\"a\xFF\": 1}"), Names("JSON", "byte 4"));
}

TEST(ManifestTest, SizeNestingAndNumberOfValuesAreBounded) {
  EXPECT_THAT(problem(std::string(kMaxManifestBytes + 1, ' ')), Names(1000000, 1000001));
  EXPECT_THAT(problem(std::string(kMaxManifestBytes, '[')), Names("list"));
  std::string maps;
  while (maps.size() < kMaxManifestBytes - 10) maps += "{\"a\":";
  EXPECT_THAT(problem(maps), Names("a.a.a", "map"));
  std::string values = "[0";
  while (values.size() < kMaxManifestBytes - 10) values += ",0";
  EXPECT_THAT(problem(values + "]"), Names(4096));
}

TEST(ManifestTest, OnlyPlainNamesCanBeWritten) {
  EXPECT_TRUE(is_manifest_file_name("optimizer_0-of.1.safetensors"));
  for (const char* name :
       {"", ".", "..", ".hidden", "a/b", "a\\b", "a b", "n\xC3\xA4me", "manifest.json"}) {
    EXPECT_FALSE(is_manifest_file_name(name)) << name;
    EXPECT_THROW(static_cast<void>(manifest_text({0, {}, {{name, 0, 0}}})), std::logic_error);
  }
  EXPECT_FALSE(is_manifest_file_name(std::string(201, 'x')));
  EXPECT_THROW(static_cast<void>(manifest_text({0, {}, {{"a", 0, 0}, {"a", 1, 1}}})),
               std::logic_error);
  EXPECT_THROW(static_cast<void>(manifest_text({-1, {}, {}})), std::logic_error);
}

/// The hashes were computed with xxh3_64_hexdigest() of Python's xxhash 4.1, from b"", b"abc" and
/// bytes(range(256)) * 5000.
TEST(ManifestTest, DescribesBytesAndFilesByTheirXxh3) {
  const test::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 256 * 5000; ++i) text += static_cast<char>(i % 256);
  const std::vector<std::pair<std::string, std::uint64_t>> cases = {
      {"", 0x2d06800538d394c2}, {"abc", 0x78af5f94892f3950}, {text, 0x7daf22229bad219a}};
  for (const auto& [content, hash] : cases) {
    const ManifestFile expected = {"x", content.size(), hash};
    EXPECT_EQ(describe_file("x", bytes_of(content)), expected);
    write_file(folder / "x", content);
    EXPECT_EQ(describe_file(folder.path(), "x"), expected);
  }
}

TEST(ManifestTest, AFileThatCannotBeDescribedIsNamed) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto describe = [&](const char* name) {
    return [&folder, name] { static_cast<void>(describe_file(folder.path(), name)); };
  };
  EXPECT_THAT(describe("none"),
              ThrowsMessage<IoError>(Names(folder / "none", std::strerror(ENOENT))));
  EXPECT_THAT(describe("pipe"), ThrowsMessage<IoError>(Names(folder / "pipe")));
}

}  // namespace
}  // namespace precast
