#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <thread>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/archive/safetensors.h"
#include "framework/core/failpoint.h"
#include "framework/core/file.h"
#include "tests/framework/core/archive/checkpoint_loop.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

const std::string kLoop = test::bin_dir() + "/checkpoint_loop";

/// @return the last number that a program printed, or `otherwise` if it printed none.
std::int64_t last_number(const std::string& printed, std::int64_t otherwise) {
  const std::size_t end = printed.rfind('\n');
  if (end == std::string::npos || end == 0) return otherwise;
  const std::size_t begin = printed.rfind('\n', end - 1);
  return std::stoll(printed.substr(begin == std::string::npos ? 0 : begin + 1));
}

/// The number of the save that wrote the newest checkpoint; -1 if there is no checkpoint. Checks
/// that the checkpoint's files have exactly the bytes of that save.
std::int64_t newest_save(const std::filesystem::path& parent) {
  const auto newest = latest_valid_checkpoint(parent);
  if (!newest) return -1;
  const auto n = static_cast<std::int64_t>(newest->metric.value());
  EXPECT_EQ(newest->step, test::step_of_save(n));
  const auto state = read_file(newest->path / "state");
  EXPECT_TRUE(state == test::content_of_save(n, 0, state.size())) << n;
  const auto model = read_file(newest->path / "model.safetensors");
  const TensorArchive archive = parse_safetensors(model, "model");
  EXPECT_TRUE(
      std::ranges::equal(archive.records.at(0).bytes, test::content_of_save(n, 1, state.size())))
      << n;
  return n;
}

std::size_t count_temporaries(const std::filesystem::path& parent) {
  return static_cast<std::size_t>(
      std::ranges::count_if(std::filesystem::directory_iterator(parent), [](const auto& entry) {
        return entry.path().filename().string().find(".tmp.") != std::string::npos;
      }));
}

/// Kills checkpoint_loop repeatedly, each time after zero, one or two committed saves and a random
/// part of the duration of two saves. The next process continues from the folder that the killed
/// one left. PRECAST_KILLS is the number of kills (default 50; before a release: 1000).
TEST(CheckpointKillTest, AfterAKillTheLastCommittedOrANewerCheckpointIsIntact) {
  const char* kills_text = std::getenv("PRECAST_KILLS");
  const int kills = kills_text == nullptr ? 50 : std::atoi(kills_text);
  const test::TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  test::Program undisturbed({kLoop, folder.path().string(), "2", "1500000"});
  ASSERT_EQ(undisturbed.wait(), 0) << undisturbed.err;
  const auto two_saves = std::chrono::steady_clock::now() - start;

  std::mt19937 random(std::random_device{}());
  std::uniform_real_distribution<> share(0, 1);
  std::int64_t committed = last_number(undisturbed.out, -1);
  const std::int64_t first = committed;
  int mid_write = 0;
  // If no kill has interrupted a write, continues up to 20 times as long.
  for (int i = 0; i < kills || (mid_write == 0 && i < 20 * kills); ++i) {
    test::Program loop({kLoop, folder.path().string(), "0", "1500000"});
    EXPECT_TRUE(loop.printed("\n", i % 3));
    std::this_thread::sleep_for(two_saves * share(random));
    ::kill(loop.id(), SIGKILL);
    ASSERT_EQ(loop.wait(), 128 + SIGKILL) << loop.err;
    committed = last_number(loop.out, committed);
    const std::int64_t newest = newest_save(folder.path());
    ASSERT_TRUE(newest == committed || newest == committed + 1)
        << "kill " << i << ": committed " << committed << ", found " << newest;
    committed = newest;
    if (count_temporaries(folder.path()) > 0) ++mid_write;
    remove_stale_checkpoints(folder.path());
    ASSERT_EQ(count_temporaries(folder.path()), 0U) << "kill " << i;
  }
  fmt::print("{} kills, {} during a write, {} saves\n", kills, mid_write, committed - first);
  EXPECT_GT(mid_write, 0) << "no kill interrupted a write";
  EXPECT_GT(committed, first) << "no save was committed";
}

class CheckpointFailpointTest : public ::testing::TestWithParam<const char*> {};

/// Kills the process in the first save of a step, and in the save that replaces it.
TEST_P(CheckpointFailpointTest, AKilledProcessLeavesTheOldOrTheNewCheckpointIntact) {
  const std::string name = GetParam();
  for (const std::string extra : {"", "no_exchange"}) {
    bool reached = false;
    for (const char* saves : {"3", "4"}) {
      const test::TemporaryFolder folder;
      const auto arguments = [&](const char* count) {
        std::vector<std::string> all = {kLoop, folder.path().string(), count, "4096"};
        if (!extra.empty()) all.push_back(extra);
        return all;
      };
      test::Program before(arguments(saves));
      ASSERT_EQ(before.wait(), 0) << before.err;
      const std::int64_t committed = last_number(before.out, -1);
      ASSERT_EQ(newest_save(folder.path()), committed);
      test::Program killed(arguments("1"), {"PRECAST_FAILPOINTS=" + name + "=kill"});
      const int code = killed.wait();
      if (code == 0) continue;
      reached = true;
      ASSERT_EQ(code, 128 + SIGKILL) << killed.err;
      const std::int64_t newest = newest_save(folder.path());
      // Between the two renames this step has no checkpoint, so the newest is the checkpoint of the
      // previous step.
      const bool between = name == "checkpoint.before_second_rename";
      EXPECT_TRUE(newest == (between ? committed - 1 : committed) || newest == committed + 1)
          << committed << " " << newest;
      test::Program after(arguments("2"));
      EXPECT_EQ(after.wait(), 0) << after.err;
      EXPECT_EQ(newest_save(folder.path()), newest + 2);
      EXPECT_EQ(count_temporaries(folder.path()), 0U);
    }
    const bool only_without_exchange = name == "checkpoint.before_second_rename";
    EXPECT_EQ(reached, !extra.empty() || !only_without_exchange) << extra;
  }
}

std::vector<const char*> checkpoint_failpoints() {
  std::vector<const char*> names;
  for (const std::string_view name : kFailpoints) {
    if (name.starts_with("checkpoint.") || name.starts_with("atomic_file.")) {
      names.push_back(name.data());
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, CheckpointFailpointTest,
                         ::testing::ValuesIn(checkpoint_failpoints()));

TEST(CheckpointKillTest, EightWritersOfOneFolderDoNotDisturbEachOther) {
  for (const std::string extra : {"", "no_exchange"}) {
    const test::TemporaryFolder folder;
    std::vector<std::string> arguments = {kLoop, folder.path().string(), "12", "100000"};
    if (!extra.empty()) arguments.push_back(extra);
    std::deque<test::Program> writers;
    for (int i = 0; i < 8; ++i) writers.emplace_back(arguments);
    std::int64_t last = -1;
    for (test::Program& writer : writers) {
      EXPECT_EQ(writer.wait(), 0) << writer.err;
      last = std::max(last, last_number(writer.out, -1));
    }
    const std::int64_t newest = newest_save(folder.path());
    EXPECT_EQ(test::step_of_save(newest), test::step_of_save(last));
    EXPECT_EQ(count_temporaries(folder.path()), 0U);
    EXPECT_LE(find_checkpoints(folder.path()).size(), 2U);
  }
}

}  // namespace
}  // namespace precast
