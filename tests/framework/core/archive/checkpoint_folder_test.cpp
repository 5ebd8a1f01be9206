#include "framework/core/archive/checkpoint_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/bytes.h"
#include "tests/support/failing_file_ops.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast {
namespace {

using test::Names;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class CheckpointFolderTest : public ::testing::Test {
 protected:
  /// Saves a checkpoint with two files; each contains `content`.
  std::filesystem::path save(std::int64_t step, std::string_view content,
                             std::optional<double> metric = {}, FileOps* chosen = nullptr) {
    test::FailingFileOps unsynced_ops(-1, 0);
    FileOps& ops = chosen == nullptr ? unsynced_ops : *chosen;
    CheckpointWriter writer(parent_, step, 2 * content.size(), ops);
    writer.add("state", bytes_of(content));
    write_file(writer.path("weights"), content, ops);
    writer.add_written("weights");
    return writer.commit(metric);
  }

  /// The content of the newest valid checkpoint, or "none" if there is no valid one.
  [[nodiscard]] std::string newest() const {
    const auto found = latest_valid_checkpoint(parent_);
    return found ? test::read_text(found->path / "state") : "none";
  }

  [[nodiscard]] std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> all;
    for (const StoredCheckpoint& one : find_checkpoints(parent_)) all.push_back(one.step);
    return all;
  }

  /// @return the names of all entries of the parent folder that are not checkpoints.
  [[nodiscard]] std::vector<std::string> others() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(parent_)) {
      const std::string name = entry.path().filename().string();
      if (name.size() != std::string_view("ckpt-0000000000").size()) names.push_back(name);
    }
    return names;
  }

  static std::string problem(const std::function<void()>& action) {
    try {
      action();
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "accepted";
  }

  test::TemporaryFolder folder_;
  std::filesystem::path parent_ = folder_ / "run" / "checkpoints";
};

TEST_F(CheckpointFolderTest, WhatIsSavedIsFoundAndVerifies) {
  const auto path = save(1250, "content", 0.75, &posix_file_ops());
  EXPECT_EQ(path, parent_ / "ckpt-0000001250");
  const Manifest manifest = verify_checkpoint(path);
  EXPECT_EQ(manifest, (Manifest{1250,
                                0.75,
                                {describe_file("state", bytes_of("content")),
                                 describe_file("weights", bytes_of("content"))}}));
  EXPECT_EQ(test::read_text(path / "weights"), "content");
  const auto found = latest_valid_checkpoint(parent_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 1250);
  EXPECT_EQ(found->path, path);
  EXPECT_EQ(found->metric, 0.75);
  EXPECT_THAT(others(), IsEmpty());
}

TEST_F(CheckpointFolderTest, NewestIsTheHighestStepAlsoBeyondTenDigits) {
  for (const std::int64_t step : {9'999'999'999, 0L, 10'000'000'000, 7L}) {
    save(step, fmt::format("{}", step));
  }
  EXPECT_THAT(steps(), ElementsAre(10'000'000'000, 9'999'999'999, 7, 0));
  EXPECT_EQ(newest(), "10000000000");
}

TEST_F(CheckpointFolderTest, MissingAndForeignFoldersHaveNoCheckpoints) {
  EXPECT_THAT(find_checkpoints(folder_ / "none"), IsEmpty());
  EXPECT_FALSE(latest_valid_checkpoint(folder_ / "none"));
  EXPECT_EQ(remove_stale_checkpoints(folder_ / "none"), 0U);
  write_file(folder_ / "file", "x");
  EXPECT_THROW(static_cast<void>(find_checkpoints(folder_ / "file")), IoError);
  for (const char* name : {"ckpt-1", "ckpt-00000000001", "ckpt--000000001", "ckpt-0000000001x",
                           "ckpt-99999999999999999999", "ckpt-", "checkpoint-0000000001"}) {
    create_folders(parent_ / name);
    write_file(parent_ / name / kManifestName, manifest_text({1, {}, {}}));
  }
  create_folders(parent_ / "ckpt-0000000002");
  write_file(parent_ / "ckpt-0000000003", "a file");
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_FALSE(latest_valid_checkpoint(parent_));
}

TEST_F(CheckpointFolderTest, WithoutCommitNothingIsLeft) {
  {
    CheckpointWriter writer(parent_, 5, 0);
    writer.add("state", bytes_of("x"));
    EXPECT_THAT(find_checkpoints(parent_), IsEmpty());
    EXPECT_EQ(others().size(), 1U);
  }
  EXPECT_TRUE(std::filesystem::is_empty(parent_));
}

TEST_F(CheckpointFolderTest, ASecondSaveOfAStepReplacesTheFirst) {
  save(5, "old", 0.5);
  save(5, "new");
  EXPECT_EQ(newest(), "new");
  EXPECT_FALSE(latest_valid_checkpoint(parent_)->metric);
  EXPECT_THAT(steps(), ElementsAre(5));
  EXPECT_THAT(others(), IsEmpty());
}

TEST_F(CheckpointFolderTest, AMetricThatIsNotFiniteIsNone) {
  save(1, "a", std::numeric_limits<double>::quiet_NaN());
  save(2, "b", -std::numeric_limits<double>::infinity());
  for (const StoredCheckpoint& one : find_checkpoints(parent_)) EXPECT_FALSE(one.metric);
}

TEST_F(CheckpointFolderTest, BadNamesAndStepsAreBugs) {
  EXPECT_THROW(CheckpointWriter(parent_, -1, 0), std::logic_error);
  CheckpointWriter writer(parent_, 1, 0);
  EXPECT_THROW(writer.add("../x", {}), std::logic_error);
  EXPECT_THROW(writer.add_written("a/b"), std::logic_error);
  EXPECT_THROW(writer.add_written("missing"), IoError);
  writer.add("x", {});
  writer.add("x", {});
  EXPECT_THROW(writer.commit(), std::logic_error);
}

/// Each case damages the newest checkpoint; the previous one is then the newest valid one.
TEST_F(CheckpointFolderTest, ADamagedCheckpointIsNamedAndSkipped) {
  struct Case {
    std::string_view what;
    std::function<void(const std::filesystem::path&)> damage;
    std::vector<std::string> facts;
  };
  const auto put = [](const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path) << text;
  };
  const std::vector<Case> cases = {
      {"changed", [&](const auto& at) { put(at / "weights", "Newer"); }, {"weights"}},
      {"cut", [&](const auto& at) { put(at / "state", "newe"); }, {"state", "5", "4"}},
      {"grown", [&](const auto& at) { put(at / "state", "newer!"); }, {"state", "5", "6"}},
      {"missing",
       [](const auto& at) { std::filesystem::remove(at / "weights"); },
       {"weights", "5"}},
      {"a folder",
       [](const auto& at) {
         std::filesystem::remove(at / "weights");
         create_folders(at / "weights");
       },
       {"weights", "5"}},
      {"no manifest",
       [](const auto& at) { std::filesystem::remove(at / kManifestName); },
       {"manifest.json"}},
      {"a cut manifest",
       [](const auto& at) { std::filesystem::resize_file(at / kManifestName, 30); },
       {"manifest.json", "JSON", "byte 31"}},
      {"another step's",
       [&](const auto& at) {
         std::filesystem::copy_file(at.parent_path() / "ckpt-0000000001" / kManifestName,
                                    at / kManifestName,
                                    std::filesystem::copy_options::overwrite_existing);
       },
       {"manifest.json", "step", "2", "1"}},
  };
  for (const Case& tested : cases) {
    save(1, "older");
    const auto path = save(2, "newer");
    tested.damage(path);
    EXPECT_THAT(problem([&] { verify_checkpoint(path); }),
                AllOf(Names(path), test::NamesMatcher(tested.facts)))
        << tested.what;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(newest(), "older") << tested.what;
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                AllOf(Names("warning", path), test::NamesMatcher(tested.facts)));
  }
  std::filesystem::remove(parent_ / "ckpt-0000000001" / "state");
  EXPECT_EQ(newest(), "none");
}

TEST_F(CheckpointFolderTest, PruningKeepsTheNewestAndTheBest) {
  const auto fill = [&] {
    const std::optional<double> metrics[] = {0.9, 0.3, 0.9, std::nullopt, 0.1, 0.5, std::nullopt};
    for (std::int64_t step = 0; step < 7; ++step) {
      save(step, "x", metrics[static_cast<std::size_t>(step)]);
    }
  };
  fill();
  EXPECT_EQ(prune_checkpoints(parent_, {.last = 10}), 0U);
  EXPECT_EQ(prune_checkpoints(parent_, {.last = 2, .best = 2}), 3U);
  EXPECT_THAT(steps(), ElementsAre(6, 5, 2, 0));
  fill();
  EXPECT_EQ(prune_checkpoints(parent_, {.last = 1, .best = 1}), 5U);
  EXPECT_THAT(steps(), ElementsAre(6, 0)) << "steps 0 and 2 have the same metric";
  fill();
  EXPECT_EQ(prune_checkpoints(parent_, {.last = 1, .best = 1, .best_since = 4}), 4U);
  EXPECT_THAT(steps(), ElementsAre(6, 5, 0)) << "from step 4 on, another metric was recorded";
  EXPECT_EQ(prune_checkpoints(parent_, {.last = 0}), 2U);
  EXPECT_THAT(steps(), ElementsAre(6));
  EXPECT_THAT(others(), IsEmpty());
  EXPECT_EQ(prune_checkpoints(folder_ / "none", {}), 0U);
}

TEST_F(CheckpointFolderTest, PruningNeverRemovesTheNewestThatIsValid) {
  for (std::int64_t step = 0; step < 5; ++step) save(step, fmt::format("{}", step));
  for (const char* name : {"ckpt-0000000004", "ckpt-0000000003"}) {
    std::filesystem::resize_file(parent_ / name / "state", 0);
  }
  EXPECT_EQ(prune_checkpoints(parent_, {.last = 1}), 3U);
  EXPECT_THAT(steps(), ElementsAre(4, 2));
  EXPECT_EQ(newest(), "2");
  std::filesystem::remove(parent_ / "ckpt-0000000002" / "state");
  EXPECT_EQ(prune_checkpoints(parent_, {.last = 1}), 0U)
      << "without a valid checkpoint, nothing is removed";
}

/// File operations that cannot remove files.
class UndeletableOps final : public test::ForwardingFileOps {
 public:
  int unlink(const char* /*path*/) override {
    errno = EROFS;
    return -1;
  }
};

TEST_F(CheckpointFolderTest, ACheckpointThatCannotBeDeletedIsRenamed) {
  UndeletableOps undeletable;
  for (std::int64_t step = 0; step < 3; ++step) save(step, "x");
  EXPECT_THAT([&] { prune_checkpoints(parent_, {}, undeletable); },
              ThrowsMessage<IoError>(Names("ckpt-0000000001.tmp.", std::strerror(EROFS))));
  EXPECT_THAT(steps(), ElementsAre(2));
  save(2, "again", {}, &undeletable);
  EXPECT_EQ(newest(), "again") << "the replaced checkpoint must only remain under a temporary name";
}

TEST_F(CheckpointFolderTest, LeftoversOfDeadWritersAreRemovedAndThoseOfLivingOnesStay) {
  const CheckpointWriter living(parent_, 7, 0);
  const std::string own_name =
      others().at(0);  // ckpt-0000000007.tmp.<host>.<process>.<token>-<count>
  const std::string token = own_name.substr(own_name.rfind('.') + 1);
  const std::string with_host = own_name.substr(0, own_name.rfind('.', own_name.rfind('.') - 1));
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  const auto named = [&](pid_t process, const std::string& end) {
    return fmt::format("{}.{}.{}", with_host, process, end);
  };
  const std::vector<std::string> stale = {named(dead, token), named(::getpid(), "earlier-0")};
  const std::vector<std::string> alive = {
      own_name,
      named(::getppid(), token),
      fmt::format("ckpt-0000000007.tmp.other.host.{}.{}", dead, token),
      "ckpt-0000000007.tmp.",
      "ckpt-0000000007.tmp.x",
      "ckpt-0000000007.tmp...",
      fmt::format("notes.tmp.x.{}.y", dead),
  };
  for (const auto* names : {&stale, &alive}) {
    for (const std::string& name : *names) {
      create_folders(parent_ / name / "inner");
      write_file(parent_ / name / "inner" / "file", "x");
    }
  }
  EXPECT_EQ(remove_stale_checkpoints(parent_), stale.size());
  EXPECT_THAT(others(), ::testing::UnorderedElementsAreArray(alive));
  // After a day, the folders of another host are also removed.
  const auto yesterday = std::filesystem::file_time_type::clock::now() - std::chrono::hours(25);
  std::filesystem::last_write_time(parent_ / alive[2], yesterday);
  std::filesystem::last_write_time(parent_ / alive.back(), yesterday);
  EXPECT_EQ(remove_stale_checkpoints(parent_), 1U);
  EXPECT_FALSE(std::filesystem::exists(parent_ / alive[2]));
}

TEST_F(CheckpointFolderTest, WithTheLockOfTheFolderAllLeftoversAreRemovedAtOnce) {
  save(7, "x");
  const std::vector<std::string> leftovers = {"ckpt-0000000007.tmp.other.host.1.0123-0",
                                              "ckpt-0000000008.tmp.x"};
  for (const std::string& name : leftovers) {
    create_folders(parent_ / name);
    write_file(parent_ / name / "file", "x");
  }
  create_folders(parent_ / "notes.tmp.other.host.1.y");
  EXPECT_EQ(remove_stale_checkpoints(parent_, CheckpointWriters::any), 0U);
  EXPECT_EQ(remove_stale_checkpoints(parent_, CheckpointWriters::none), leftovers.size());
  EXPECT_THAT(others(), ElementsAre("notes.tmp.other.host.1.y"));
  EXPECT_THAT(steps(), ElementsAre(7));
}

class SmallDisk final : public test::ForwardingFileOps {
 public:
  explicit SmallDisk(std::int64_t free_bytes) : free_bytes_(free_bytes) {}
  std::int64_t free_bytes(const char* /*path*/) override { return free_bytes_; }

 private:
  std::int64_t free_bytes_;
};

TEST_F(CheckpointFolderTest, TooLittleSpaceIsReportedBeforeAnythingIsWritten) {
  SmallDisk small(64'000'999);
  EXPECT_THAT([&] { CheckpointWriter(parent_, 3, 1000, small); },
              ThrowsMessage<IoError>(
                  Names(parent_ / "ckpt-0000000003", 64001000, 1000, 64000000, 64000999)));
  EXPECT_TRUE(std::filesystem::is_empty(parent_));
  SmallDisk enough(64'001'000);
  EXPECT_NO_THROW(CheckpointWriter(parent_, 3, 1000, enough));
  EXPECT_THROW(CheckpointWriter(parent_, 3, 1'000'000'000'000'000'000), IoError);
}

/// Parameters: the errno value of the call that fails (0: a short write), and whether the file
/// system can exchange names.
class CheckpointFaults : public CheckpointFolderTest,
                         public ::testing::WithParamInterface<std::tuple<int, bool>> {};

class FaultyOps final : public test::FailingFileOps {
 public:
  FaultyOps(int nth, int errno_value, bool can_exchange)
      : FailingFileOps(nth, errno_value), can_exchange_(can_exchange) {}
  int exchange(const char* a, const char* b) override {
    if (can_exchange_) return FailingFileOps::exchange(a, b);
    errno = EINVAL;
    return -1;
  }

 private:
  bool can_exchange_;
};

/// Makes the n-th file operation fail in the n-th save, until a save has fewer than n operations.
TEST_P(CheckpointFaults, LeaveTheOlderOrTheNewCheckpointAndNothingElse) {
  const auto [errno_value, can_exchange] = GetParam();
  const bool harmless = errno_value == EINTR || errno_value == 0;
  for (const std::int64_t step : {1, 2}) {  // step 1 replaces the older checkpoint, step 2 adds one
    int nth = 1;
    for (bool fired = true; fired; ++nth) {
      ASSERT_LT(nth, 100) << "a save needs fewer than 100 operations";
      std::filesystem::remove_all(parent_);
      save(1, "older");
      FaultyOps ops(nth, errno_value, can_exchange);
      bool failed = false;
      try {
        save(step, "newer", {}, &ops);
      } catch (const IoError& error) {
        failed = true;
        EXPECT_THAT(error.what(), Names(parent_, std::strerror(errno_value)));
      }
      fired = ops.failed();
      EXPECT_EQ(failed, fired && !harmless) << "call " << nth;
      const std::string found = newest();
      EXPECT_TRUE(found == "newer" || (failed && found == "older")) << found << ", call " << nth;
      // If only the last sync failed, the older checkpoint remains under a name that is ignored.
      const bool kept_aside = failed && found == "newer" && step == 1;
      EXPECT_EQ(others().size(), kept_aside ? 1U : 0U) << "call " << nth;
    }
    EXPECT_GE(nth, 15);
  }
}

TEST_P(CheckpointFaults, WhilePruningLeaveTheNewest) {
  const auto [errno_value, can_exchange] = GetParam();
  int nth = 1;
  for (bool fired = true; fired; ++nth) {
    ASSERT_LT(nth, 100);
    std::filesystem::remove_all(parent_);
    for (std::int64_t step = 0; step < 4; ++step) save(step, fmt::format("{}", step));
    FaultyOps ops(nth, errno_value, can_exchange);
    bool failed = false;
    try {
      prune_checkpoints(parent_, {}, ops);
    } catch (const IoError& error) {
      failed = true;
      EXPECT_THAT(error.what(), Names(parent_));
    }
    fired = ops.failed();
    EXPECT_EQ(failed, fired && errno_value != EINTR && errno_value != 0);
    EXPECT_EQ(newest(), "3");
    for (const StoredCheckpoint& one : find_checkpoints(parent_)) verify_checkpoint(one.path);
  }
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(nth, 6) << "three renames, a sync, and a run without a fault";
}

INSTANTIATE_TEST_SUITE_P(All, CheckpointFaults,
                         ::testing::Combine(::testing::Values(ENOSPC, EIO, EINTR, EDQUOT, 0),
                                            ::testing::Bool()));

}  // namespace
}  // namespace precast
