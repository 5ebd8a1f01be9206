#include "framework/engine/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/error.h"
#include "tests/support/full_disk.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast::engine {
namespace {

using test::Names;

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(RunFolderTest, HasItsOwnNameOrTheGivenOne) {
  const test::TemporaryFolder folder;
  const RunFolder a(folder / "runs", "", "resnet18", false);
  const RunFolder b(folder / "runs", "", "resnet18", false);
  EXPECT_NE(a.path(), b.path());
  EXPECT_TRUE(std::filesystem::is_directory(a.path()));
  EXPECT_EQ(RunFolder(folder / "runs", "mine", "x", false).path(), folder / "runs/mine");
}

TEST(RunFolderTest, ASlashInTheNameOfAModelMakesNoFolder) {
  const test::TemporaryFolder folder;
  const RunFolder run(folder / "runs", "", "timm/net", false);
  EXPECT_EQ(run.path().parent_path(), folder / "runs");
  EXPECT_THAT(run.path().filename().string(), Names("timm-net"));
}

TEST(RunFolderTest, DoesNotWriteIntoAnEarlierRun) {
  const test::TemporaryFolder folder;
  JsonLinesLog(RunFolder(folder.path(), "mine", "x", false) / "log").write({{"epoch", 0}});
  EXPECT_THROW(RunFolder(folder.path(), "mine", "x", false), IoError);
  EXPECT_EQ(RunFolder(folder.path(), "mine", "x", true).path(), folder / "mine");
}

TEST(RunFolderTest, CheckpointsWithoutALogAreResults) {
  const test::TemporaryFolder folder;
  CheckpointWriter(folder / "mine/checkpoints", 1, 0).commit();
  EXPECT_THROW(RunFolder(folder.path(), "mine", "x", false), IoError);
  EXPECT_EQ(RunFolder(folder.path(), "mine", "x", true).path(), folder / "mine");
}

TEST(RunFolderTest, AFolderWithoutResultsCanBeUsedAgain) {
  const test::TemporaryFolder folder;
  { const JsonLinesLog empty(RunFolder(folder.path(), "mine", "x", false) / "log"); }
  EXPECT_EQ(RunFolder(folder.path(), "mine", "x", false).path(), folder / "mine");
  // A run that was stopped in its first epoch has a checkpoint, but no line in the log yet.
  CheckpointWriter(folder / "mine/checkpoints", 1, 0).commit();
  EXPECT_THROW(RunFolder(folder.path(), "mine", "x", false), IoError);
}

TEST(RunFolderTest, AFinishedRunWithoutCheckpointsCannotBeResumed) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "mine");
  std::ofstream(folder / "mine/summary.json") << "{}\n";
  EXPECT_THAT([&] { const RunFolder resumed(folder.path(), "mine", "x", true); },
              testing::ThrowsMessage<IoError>(Names(folder / "mine", "logging.run_id")));
  CheckpointWriter(folder / "mine/checkpoints", 1, 0).commit();
  EXPECT_EQ(RunFolder(folder.path(), "mine", "x", true).path(), folder / "mine");
}

TEST(RunFolderTest, OneProcessAtATimeTrainsInAFolder) {
  const test::TemporaryFolder folder;
  std::optional<RunFolder> first(std::in_place, folder.path(), "mine", "x", false);
  RunFolder moved = std::move(*first);
  first.reset();
  for (const bool resume : {false, true}) {
    try {
      const RunFolder second(folder.path(), "mine", "x", resume);
      ADD_FAILURE() << "expected an error: two training runs in one folder";
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), Names(folder / "mine", ::getpid()));
    }
  }
  EXPECT_EQ(RunFolder(folder / "mine").path(), folder / "mine") << "other ranks need no lock";
  moved = RunFolder(folder.path(), "other", "x", false);
  EXPECT_NO_THROW(RunFolder(folder.path(), "mine", "x", true));
}

TEST(RunFolderTest, RemovesTheIncompleteCheckpointsOfKilledProcessesOnAnyHost) {
  const test::TemporaryFolder folder;
  const std::filesystem::path left =
      folder / "mine/checkpoints/ckpt-0000000007.tmp.other.host.1.0123-0";
  std::filesystem::create_directories(left);
  std::ofstream(left / "model.safetensors") << "x";
  std::optional<RunFolder> first(std::in_place, folder.path(), "mine", "x", false);
  EXPECT_FALSE(std::filesystem::exists(left));
  // A start that is refused removes nothing.
  std::filesystem::create_directories(left);
  EXPECT_THROW(RunFolder(folder.path(), "mine", "x", true), IoError);
  first.reset();
  std::ofstream(folder / "mine/log") << "{}\n";
  EXPECT_THROW(RunFolder(folder.path(), "mine", "x", false), IoError);
  EXPECT_TRUE(std::filesystem::exists(left));
}

TEST(JsonLinesLogTest, TextThatIsNotUtf8IsLogged) {
  const test::TemporaryFolder folder;
  JsonLinesLog(folder / "log").write({{"file", "caf\xe9.beton"}});
  EXPECT_THAT(test::read_text(folder / "log"), testing::HasSubstr("caf\ufffd.beton"));
}

TEST(JsonLinesLogTest, ARewoundLogContinuesWithoutTheLaterLines) {
  const test::TemporaryFolder folder;
  std::int64_t position = 0;
  {
    JsonLinesLog log(folder / "log");
    log.write({{"epoch", 0}, {"relative_time", 100.0}});
    position = log.position();
    log.write({{"epoch", 1}});
  }
  JsonLinesLog log(folder / "log");
  EXPECT_GT(log.position(), position);
  log.rewind(position);
  log.write({{"epoch", 7}});
  const auto lines = lines_of(folder / "log");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].at("epoch"), 7);
  EXPECT_GE(lines[1].at("relative_time"), 100.0);
}

TEST(JsonLinesLogTest, TheTimeBetweenTheLastLineAndTheCheckpointCounts) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "log") << "{\"relative_time\": 100, \"epoch\": 0}\n";
  JsonLinesLog log(folder / "log");
  log.rewind(log.position());
  EXPECT_GE(log.seconds(), 100);
  log.advance(50);
  EXPECT_NEAR(log.seconds(), 100, 5) << "the clock never goes back to before the last line";
  log.advance(160);
  log.write({{"epoch", 1}});
  EXPECT_GE(log.seconds(), 160);
  const auto lines = lines_of(folder / "log");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NEAR(lines[1].at("relative_time").get<double>(), 160, 5);
}

TEST(JsonLinesLogTest, WritesOneLineARecordWithTimes) {
  const test::TemporaryFolder folder;
  JsonLinesLog log(folder / "log");
  log.write({{"epoch", 0}, {"top_1", 0.5}});
  log.write({{"epoch", 1}});
  const auto lines = lines_of(folder / "log");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("top_1"), 0.5);
  EXPECT_GE(lines[1].at("relative_time"), lines[0].at("relative_time"));
  EXPECT_GT(lines[0].at("timestamp"), 1.7e9);
}

TEST(JsonLinesLogTest, AFullDiskLosesNoLineAndStopsNothing) {
  const test::TemporaryFolder folder;
  test::FullDisk disk(7);
  JsonLinesLog log(folder / "log", disk);
  log.write({{"epoch", 0}});
  disk.full = true;
  log.write({{"epoch", 1}});
  log.write({{"epoch", 2}});
  disk.full = false;
  log.write({{"epoch", 3}});
  const auto lines = lines_of(folder / "log");
  ASSERT_EQ(lines.size(), 4U);
  for (int epoch = 0; epoch < 4; ++epoch)
    EXPECT_EQ(lines[static_cast<std::size_t>(epoch)].at("epoch"), epoch);
}

TEST(JsonLinesLogTest, ARewoundLogKeepsTheEarlierLinesThatAFullDiskRefused) {
  const test::TemporaryFolder folder;
  test::PartlyFullDisk disk;
  JsonLinesLog log(folder / "log", disk);
  log.write({{"epoch", 0}});
  disk.left = 7;
  log.write({{"epoch", 1}});
  const std::int64_t position = log.position();
  log.write({{"epoch", 2}});
  log.rewind(position);
  EXPECT_EQ(log.position(), position);
  disk.left = 1000;
  log.write({{"epoch", 3}});
  const auto lines = lines_of(folder / "log");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].at("epoch"), 1);
  EXPECT_EQ(lines[2].at("epoch"), 3);
}

TEST(JsonLinesLogTest, ALineThatACrashLeftTornDoesNotSpoilTheNextOne) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "log")
      << "{\"relative_time\": 5, \"epoch\": 0}\n{\"relative_time\": 7, \"ep";
  JsonLinesLog log(folder / "log");
  // When the checkpoint was saved, the log had a second line. A full disk or a power failure has
  // truncated it.
  log.rewind(1000);
  log.write({{"epoch", 2}});
  const auto lines = lines_of(folder / "log");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].at("epoch"), 2);
  EXPECT_NEAR(lines[1].at("relative_time").get<double>(), 5, 1);
}

}  // namespace
}  // namespace precast::engine
