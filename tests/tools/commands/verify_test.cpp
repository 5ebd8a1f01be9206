// `precast verify` as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {
namespace {

using nlohmann::json;
using test::Names;
using testing::HasSubstr;

class VerifyTest : public ::testing::Test {
 protected:
  ChildResult verify(std::vector<std::string> options) const {
    options.insert(options.begin(), {test::bin_dir() + "/precast", "verify"});
    return run_child(options, std::chrono::minutes(1));
  }
  /// Unpacks a file that FFCV wrote. @return its path.
  std::string golden(const std::string& name) const {
    return test::put_golden_beton(folder_.path(), name);
  }
  /// Flips one bit in the value of a field of one sample.
  static void damage(const std::filesystem::path& path, std::uint64_t sample, std::size_t field,
                     std::uint64_t byte) {
    std::vector<std::byte> bytes = test::read_bytes(path);
    bytes[data::BetonReader(path).blob_offset(sample, field) + byte] ^= std::byte{8};
    test::write_bytes(path, bytes);
  }
  test::TemporaryFolder folder_;
};

TEST_F(VerifyTest, AValidFilePasses) {
  test::write_made_beton(folder_ / "made.beton", {.samples = 30});
  for (const std::string& file :
       {(folder_ / "made.beton").string(), golden("allfields_w3_empty")}) {
    EXPECT_EQ(verify({file}).exit_code, 0);
    const ChildResult deep = verify({file, "--deep", "--json"});
    EXPECT_EQ(deep.exit_code, 0) << deep.errors;
    const json report = json::parse(deep.output)[0];
    EXPECT_EQ(report.at("samples"), 30);
    EXPECT_EQ(report.at("damaged").size(), 0U);
  }
}

TEST_F(VerifyTest, DamageInAValueIsFoundByItsChecksumAndOnlyByReading) {
  const std::filesystem::path path = folder_ / "made.beton";
  test::write_made_beton(path, {.samples = 30});
  damage(path, 17, 0, 100);
  damage(path, 3, 0, 0);
  EXPECT_EQ(verify({path}).exit_code, 0);
  const ChildResult deep = verify({path, "--deep", "--workers", "3"});
  EXPECT_EQ(deep.exit_code, 3);
  EXPECT_THAT(deep.output, Names(path, 2, "sample 3 field 'image'", "sample 17 field 'image'"));
  EXPECT_EQ(test::occurrences(deep.output, "sample 17"), 1) << deep.output;
  EXPECT_EQ(test::occurrences(deep.output, path.string()), 1) << deep.output;
}

TEST_F(VerifyTest, ADamagedJpegIsFoundWithoutChecksums) {
  const std::string path = golden("img_jpg_w3");
  damage(path, 4, 0, 1);
  const ChildResult deep = verify({path, "--deep", "--json"});
  EXPECT_EQ(deep.exit_code, 3);
  const json report = json::parse(deep.output)[0];
  EXPECT_EQ(report.at("checksums"), "none");
  ASSERT_EQ(report.at("damaged").size(), 1U);
  EXPECT_EQ(report.at("damaged")[0].at("sample"), 4);
}

TEST_F(VerifyTest, ChecksumsBesideAForeignFileFindLaterDamage) {
  const std::string path = golden("img_raw_w1");
  const ChildResult first = verify({path, "--write-sums"});
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_THAT(first.output, Names(path + ".sum"));
  EXPECT_TRUE(std::filesystem::exists(path + ".sum"));
  EXPECT_EQ(json::parse(verify({path, "--json"}).output)[0].at("checksums"), "beside");
  damage(path, 0, 0, 5);
  EXPECT_EQ(verify({path, "--deep"}).exit_code, 3);
}

TEST_F(VerifyTest, ChecksumsThatCannotBeWrittenAreAnErrorBeforeTheValuesAreRead) {
  const std::string path = golden("img_raw_w1");
  std::filesystem::create_symlink(folder_ / "none/x.sum", path + ".sum");
  // If the command read the values, the failpoint would end it with another exit code.
  const auto run = test::precast_run({"verify", path, "--write-sums"},
                                     {"PRECAST_FAILPOINTS=each_sample.before_sample=term"});
  EXPECT_EQ(run.code, 5) << run.err;
  EXPECT_THAT(run.out, Names(folder_ / "none/x.sum"));
}

TEST_F(VerifyTest, TheResultOfTheCheckIsKeptIfTheChecksumsCannotBeWritten) {
  const std::string path = golden("img_raw_w1");
  const std::vector<std::string> failing = {"PRECAST_FAILPOINTS=atomic_file.before_sync=error"};
  const auto run = test::precast_run({"verify", path, "--write-sums", "--json"}, failing);
  EXPECT_EQ(run.code, 5) << run.err;
  const json report = json::parse(run.out)[0];
  EXPECT_EQ(report.at("damaged").size(), 0U);
  EXPECT_FALSE(report.contains("wrote"));
  EXPECT_THAT(report.at("error").get<std::string>(), HasSubstr("atomic_file.before_sync"));
  EXPECT_FALSE(std::filesystem::exists(path + ".sum"));
  const auto text = test::precast_run({"verify", path, "--write-sums"}, failing);
  EXPECT_THAT(text.out, Names(path, report.at("samples").get<int>(), "atomic_file.before_sync"));
}

TEST_F(VerifyTest, TheOtherFilesAreVerifiedAfterADamagedOne) {
  test::write_made_beton(folder_ / "made.beton", {});
  std::filesystem::resize_file(folder_ / "made.beton",
                               std::filesystem::file_size(folder_ / "made.beton") - 1);
  // The exit code for an unreadable file takes precedence, whatever the order of the files.
  EXPECT_EQ(verify({folder_ / "none.beton", folder_ / "made.beton"}).exit_code, 5);
  const ChildResult run =
      verify({folder_ / "made.beton", folder_ / "none.beton", golden("wds_w2")});
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_THAT(run.output, Names("error: " + (folder_ / "made.beton").string(),
                                folder_ / "none.beton", folder_ / "wds_w2.beton", 12));
}

TEST_F(VerifyTest, ASignalStopsItWithItsCodeAndAMessage) {
  const std::string path = golden("img_jpg_w3");
  const auto run = test::precast_run({"verify", path, "--deep", "--workers", "1"},
                                     {"PRECAST_FAILPOINTS=each_sample.before_sample=term@3"});
  EXPECT_EQ(run.code, 128 + SIGTERM);
  EXPECT_THAT(run.err, HasSubstr(path));
  EXPECT_EQ(run.out, "");
}

}  // namespace
}  // namespace precast::tools
