#include "framework/core/archive/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

using test::dump;
using test::Names;

std::string parsed(std::span<const std::byte> file) {
  return dump(parse_safetensors(file, "w.safetensors").records);
}

/// A file with this header and `data_bytes` bytes of data.
std::vector<std::byte> with_header(const std::string& header, std::size_t data_bytes) {
  std::vector<std::byte> file(8 + header.size() + data_bytes);
  const std::uint64_t size = header.size();
  std::memcpy(file.data(), &size, sizeof size);
  std::memcpy(file.data() + 8, header.data(), header.size());
  return file;
}

std::string problem(const std::vector<std::byte>& file) {
  try {
    static_cast<void>(parse_safetensors(file, "w.safetensors"));
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

class Safetensors : public ::testing::Test {
 protected:
  std::vector<std::byte> written(const std::map<std::string, std::string>& metadata = {}) {
    write_safetensors(folder_ / "w.safetensors", test::sample_tensors(), metadata);
    return read_file(folder_ / "w.safetensors");
  }
  test::TemporaryFolder folder_;
};

TEST_F(Safetensors, GivesBackWhatWasWritten) {
  const auto file = written({{"epoch", "3"}, {"note", "n\xC3\xA4h"}});
  const TensorArchive archive = parse_safetensors(file, "w");
  EXPECT_EQ(dump(archive.records), dump(test::sample_tensors()));
  EXPECT_THAT(archive.metadata, ::testing::ElementsAre(::testing::Pair("epoch", "3"),
                                                       ::testing::Pair("note", "n\xC3\xA4h")));
}

TEST_F(Safetensors, AlignsEachTensorToItsElements) {
  const auto file = written();
  const TensorArchive archive = parse_safetensors(file, "w");
  for (const TensorRecord& record : archive.records) {
    EXPECT_EQ((record.bytes.data() - file.data()) %
                  static_cast<std::ptrdiff_t>(dtype_info(record.dtype).size_bytes),
              0)
        << record.name;
  }
}

TEST_F(Safetensors, WritesNoTensorsAndWritesTwiceTheSame) {
  write_safetensors(folder_ / "none.safetensors", {});
  EXPECT_TRUE(parse_safetensors(read_file(folder_ / "none.safetensors"), "w").records.empty());
  EXPECT_EQ(written(), written());
}

TEST_F(Safetensors, RefusesToWriteWhatNobodyCouldRead) {
  auto records = test::sample_tensors();
  records.push_back(records[0]);
  EXPECT_THROW(write_safetensors(folder_ / "w.safetensors", records), CheckpointError);
  records.pop_back();
  records[0].name = "\xFF";
  EXPECT_THROW(write_safetensors(folder_ / "w.safetensors", records), CheckpointError);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Safetensors, RefusesEveryTruncation) {
  test::expect_refused_at_every_cut(written({{"k", "v"}}), parsed);
}

TEST_F(Safetensors, NoticesEveryChangedByte) {
  test::expect_refused_or_intact(written({{"k", "v"}}), dump(test::sample_tensors()), parsed);
}

TEST_F(Safetensors, SurvivesEveryChangedByteOfAFileWithoutDigest) {
  std::string header = entry("F32", "[2,3]", "[0,24]");
  test::expect_refused_or_intact(with_header(header, 24), "", parsed);
}

TEST_F(Safetensors, ReadsFilesOfOthers) {
  const auto file = with_header(
      R"({"b":{"data_offsets":[4,12],"dtype":"I64","shape":[]},"__metadata__":{"format":"pt"},)"
      R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}   )",
      12);
  const TensorArchive archive = parse_safetensors(file, "w");
  ASSERT_EQ(archive.records.size(), 2U);
  EXPECT_EQ(archive.records[0].name, "b");
  EXPECT_EQ(archive.records[1].bytes.data() + 4, archive.records[0].bytes.data());
  EXPECT_EQ(archive.metadata.at("format"), "pt");
}

TEST_F(Safetensors, RefusesHostileHeadersAndSaysWhy) {
  const struct {
    std::string header;
    std::size_t data_bytes;
    std::vector<std::string> facts;
  } cases[] = {
      {entry("F32", "[2]", "[0,8]"), 7, {"'a'", "7", "[0, 8]"}},
      {entry("F32", "[2]", "[0,8]"), 9, {"8", "9"}},
      {entry("F32", "[2]", "[1,9]"), 9, {"'a'", "0", "1"}},
      {entry("F32", "[3]", "[0,8]"), 8, {"'a'", "F32 [3]", "8"}},
      {entry("F32", "[2]", "[8,0]"), 8, {"'a'", "8", "[8, 0]"}},
      {entry("F32", "[4294967296,4294967296,4]", "[0,0]"),
       0,
       {"'a'", "F32 [4294967296, 4294967296, 4]", "0"}},
      {entry("F32", "[-2]", "[0,8]"), 8, {"'a'", "shape", "-2"}},
      {entry("F32", "[2.0]", "[0,8]"), 8, {"'a'", "shape", "2.0"}},
      {entry("F32", "[18446744073709551615]", "[0,8]"),
       8,
       {"'a'", "shape", "18446744073709551615"}},
      {entry("F32", "[[2]]", "[0,8]"), 8, {"'a'", "shape", "list"}},
      {entry("F32", "[2]", "[0,8,8]"), 8, {"'a'", "dtype", "shape", "data_offsets"}},
      {entry("F8_E4M3", "[8]", "[0,8]"), 8, {"'a'", "'F8_E4M3'"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6,
       {"'b'", "4", "2"}},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       1,
       {"'a'", "repeated"}},
      {R"({"a":{"dtype":"U8","shape":[1]}})", 1, {"'a'", "dtype", "shape", "data_offsets"}},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":{}}})", 1, {"'a'", "x", "map"}},
      {R"({"a":1})", 0, {"'a'", "1"}},
      {R"({"__metadata__":{"k":1}})", 0, {"'__metadata__'", "k", "1"}},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, {"'__metadata__'", "repeated"}},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, {"'__metadata__'", "k", "repeated"}},
      {R"({"a":)", 0, {"JSON", "14"}},
      {R"([])", 0, {"'{'"}},
      {"{\"\xFF\":{}}", 0, {"JSON", "11"}},
      {"", 0, {"'{'"}},
  };
  for (const auto& [header, data_bytes, facts] : cases) {
    const std::string message = problem(with_header(header, data_bytes));
    EXPECT_THAT(message, Names("w.safetensors")) << header;
    EXPECT_THAT(message, test::NamesMatcher(facts)) << header;
  }
}

TEST_F(Safetensors, RefusesALongHeaderBeforeReadingIt) {
  std::vector<std::byte> file(64);
  const std::uint64_t size = UINT64_MAX;
  std::memcpy(file.data(), &size, sizeof size);
  EXPECT_THAT(problem(file), Names("w.safetensors", 100000000, size));
}

TEST_F(Safetensors, RefusesDeepNesting) {
  EXPECT_THAT(problem(with_header("{\"a\":" + std::string(1'000'000, '['), 0)),
              Names("list", "'a'"));
  EXPECT_THAT(problem(with_header(std::string(1'000'000, '{'), 0)), Names("JSON", 10));
}

}  // namespace
}  // namespace precast
