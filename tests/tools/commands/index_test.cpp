// `precast index` as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "data/decode/jpeg_index.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::HasSubstr;

/// 26 JPEG photographs that FFCV wrote.
class IndexTest : public testing::Test {
 protected:
  [[nodiscard]] std::size_t count_files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }
  /// Overwrites the first byte of `count` JPEGs, starting with sample 3.
  void damage(std::uint64_t count) {
    auto bytes = test::read_bytes(file_);
    const data::BetonReader reader(file_);
    for (std::uint64_t sample = 3; sample < 3 + count; ++sample)
      bytes[reader.blob_offset(sample, reader.first_field(data::FieldType::image))] = {};
    test::write_bytes(file_, bytes);
  }

  test::TemporaryFolder folder_;
  std::string file_ = test::put_golden_beton(folder_.path(), "img_jpg_w3");
};

TEST_F(IndexTest, WritesTheSidecarBesideTheDataset) {
  const auto run = test::precast_run({"index", file_, "--json", "--workers", "0"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto report = nlohmann::json::parse(run.out);
  EXPECT_EQ(report["index"], file_ + ".jidx");
  EXPECT_EQ(report["jpegs"], 26);
  EXPECT_EQ(report["damaged"].size(), 0U);
  const data::BetonReader reader(file_);
  const auto index = data::JpegIndex::open(file_ + ".jidx", reader.fingerprint(), reader.size());
  EXPECT_FALSE(index->find(25).empty());
}

TEST_F(IndexTest, DamagedImagesAreReportedAndSkipped) {
  damage(12);
  const auto run = test::precast_run({"index", file_, "--workers", "3"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Names(26, 12, "sample 3", "sample 12", 2));
  EXPECT_THAT(run.out, testing::Not(HasSubstr("sample 13")));
  const auto report = nlohmann::json::parse(test::precast_run({"index", file_, "--json"}).out);
  ASSERT_EQ(report["damaged"].size(), 12U);
  EXPECT_EQ(report["damaged"][11]["sample"], 14);
  EXPECT_THAT(report["damaged"][11]["error"].get<std::string>(), HasSubstr("JPEG"));
  EXPECT_EQ(report["without_checkpoints"], 0);
}

TEST_F(IndexTest, ASignalStopsItWithItsCodeAndNothingIsLeft) {
  const auto run = test::precast_run({"index", file_, "--workers", "1"},
                                     {"PRECAST_FAILPOINTS=each_sample.before_sample=term@3"});
  EXPECT_EQ(run.code, 128 + SIGTERM);
  EXPECT_THAT(run.err, Names(file_ + ".jidx"));
  EXPECT_EQ(count_files(), 1U);
}

TEST_F(IndexTest, ASignalThatComesWhileTheFileIsWrittenLeavesNothingUnfinished) {
  const auto run =
      test::precast_run({"index", file_}, {"PRECAST_FAILPOINTS=atomic_file.before_sync=term"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(std::filesystem::exists(file_ + ".jidx"));
  EXPECT_EQ(count_files(), 2U);
}

TEST_F(IndexTest, ASidecarThatCannotBeWrittenIsAnErrorBeforeTheImagesAreRead) {
  std::filesystem::create_directory(file_ + ".jidx");
  // If the command read the images, the failpoint would end it with another exit code.
  const auto run =
      test::precast_run({"index", file_}, {"PRECAST_FAILPOINTS=each_sample.before_sample=term"});
  EXPECT_EQ(run.code, 5) << run.err;
  EXPECT_THAT(run.err, Names(file_ + ".jidx"));
  EXPECT_EQ(count_files(), 2U);
}

TEST_F(IndexTest, WrongOptionsEndWithCode2) {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, Words>> cases = {
      {{"--every", "0"}, {"--every", "1", "65536", "0"}},
      {{"--workers", "-1"}, {"--workers", "0", "1024", "-1"}},
  };
  for (const auto& [options, facts] : cases) {
    const auto run = test::precast_run({"index", file_, options[0], options[1]});
    EXPECT_EQ(run.code, 2) << options[0];
    EXPECT_THAT(run.err, test::NamesMatcher(facts));
  }
  EXPECT_EQ(count_files(), 1U);
}

}  // namespace
}  // namespace precast::tools
