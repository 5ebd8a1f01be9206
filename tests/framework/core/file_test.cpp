#include "framework/core/file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/failing_file_ops.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast {
namespace {

using test::Names;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count_files(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

class AtomicFileFaults : public ::testing::TestWithParam<int> {};

/// Makes the n-th file operation fail in the n-th run, until a run has fewer than n operations.
TEST_P(AtomicFileFaults, LeaveTheOldOrTheNewFileAndNothingElse) {
  const test::TemporaryFolder folder;
  const auto path = folder / "weights";
  int nth = 1;
  for (bool fired = true; fired; ++nth) {
    ASSERT_LT(nth, 50) << "a run needs fewer than 50 operations";
    write_file(path, "old");
    test::FailingFileOps ops(nth, GetParam());
    bool failed = false;
    try {
      AtomicFile file(path, ops);
      file.append(std::string_view("new "));
      file.append(std::string_view("content"));
      file.write_at(0, std::as_bytes(std::span("NEW", 3)));
      file.commit();
    } catch (const IoError& error) {
      failed = true;
      EXPECT_THAT(error.what(), Names(path, std::strerror(GetParam())));
    }
    fired = ops.failed();
    EXPECT_EQ(count_files(folder.path()), 1U) << "call " << nth;
    const std::string text = test::read_text(path);
    if (failed) {
      EXPECT_THAT(text, ::testing::AnyOf("old", "NEW content")) << "call " << nth;
    } else {
      EXPECT_EQ(text, "NEW content") << "call " << nth;
    }
    const bool harmless = GetParam() == EINTR || GetParam() == 0;
    EXPECT_EQ(failed, fired && !harmless) << "call " << nth;
  }
  EXPECT_GE(nth, 8);
}

INSTANTIATE_TEST_SUITE_P(All, AtomicFileFaults, ::testing::Values(ENOSPC, EIO, EINTR, 0));

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::TemporaryFolder folder;
  {
    AtomicFile file(folder / "x");
    file.append(std::string_view("abc"));
    EXPECT_EQ(file.size(), 3U);
    EXPECT_EQ(count_files(folder.path()), 1U);
  }
  EXPECT_EQ(count_files(folder.path()), 0U);
}

TEST(AtomicFile, WritesPastTheEnd) {
  const test::TemporaryFolder folder;
  AtomicFile file(folder / "x");
  file.write_at(4, std::as_bytes(std::span("end", 3)));
  EXPECT_EQ(file.size(), 0U);
  file.append(std::string_view("head"));
  file.commit();
  EXPECT_EQ(test::read_text(folder / "x"), "headend");
}

/// A killed process leaves its temporary file, and in a container the next process often has the
/// same id.
TEST(AtomicFile, IsNotStoppedByTheTemporaryFilesOfAKilledProcess) {
  const test::TemporaryFolder folder;
  for (int i = 0; i < 5000; ++i) {
    posix_file_ops().close(posix_file_ops().create_exclusive(
        fmt::format("{}.tmp.{}.{}", (folder / "x").string(), ::getpid(), i).c_str()));
  }
  write_file(folder / "x", "new");
  EXPECT_EQ(test::read_text(folder / "x"), "new");
}

TEST(AtomicFile, NamesAPathThatCannotBeWritten) {
  const test::TemporaryFolder folder;
  const auto problem = [](const std::filesystem::path& path) -> std::string {
    try {
      write_file(path, "x");
    } catch (const IoError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::io);
      return error.what();
    }
    return "written";
  };
  EXPECT_THAT(problem(folder.path()), Names(folder.path(), std::strerror(EISDIR)));
  EXPECT_THAT(problem(folder / "no" / "x"), Names(folder / "no" / "x", std::strerror(ENOENT)));
}

TEST(AtomicFile, RefusesAndKeepsPathsThatAreNotFiles) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0644), 0);
  std::filesystem::create_symlink("pipe", folder / "link");
  for (const char* name : {"pipe", "link"}) {
    EXPECT_THAT([&] { write_file(folder / name, "x"); },
                ::testing::ThrowsMessage<IoError>(Names(folder / "pipe")));
  }
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_EQ(count_files(folder.path()), 2U);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_THAT([&] { write_file("/proc/self/fd/" + std::to_string(ends[1]), "x"); },
              ::testing::ThrowsMessage<IoError>(Not(HasSubstr(std::strerror(ENOENT)))));
  for (const int end : ends) ::close(end);
}

TEST(AtomicFile, WritesToTheTargetOfALink) {
  const test::TemporaryFolder folder;
  create_folders(folder / "far");
  write_file(folder / "far" / "old", "old");
  std::filesystem::create_symlink("far/old", folder / "to_old");
  std::filesystem::create_symlink("to_old", folder / "to_link");
  std::filesystem::create_symlink(folder / "far" / "new", folder / "to_new");
  for (const char* name : {"to_link", "to_new"}) {
    write_file(folder / name, name);
    EXPECT_EQ(test::read_text(folder / name), name);
    EXPECT_TRUE(std::filesystem::is_symlink(folder / name)) << name;
  }
  EXPECT_EQ(AtomicFile(folder / "to_link").path(), folder / "far" / "old");
  EXPECT_EQ(test::read_text(folder / "far" / "old"), "to_link");
  EXPECT_EQ(test::read_text(folder / "far" / "new"), "to_new");
  EXPECT_EQ(count_files(folder / "far"), 2U);
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THAT([&] { write_file(folder / "loop", "x"); },
              ::testing::ThrowsMessage<IoError>(Names(folder / "loop", std::strerror(ELOOP))));
}

TEST(MappedFile, GivesTheBytesOfAFile) {
  const test::TemporaryFolder folder;
  write_file(folder / "x", "hello");
  const MappedFile file(folder / "x");
  EXPECT_EQ(file.bytes().size(), 5U);
  EXPECT_EQ(std::to_integer<char>(file.bytes()[4]), 'o');
  EXPECT_EQ(file.path(), folder / "x");
}

TEST(MappedFile, TakesAnEmptyFile) {
  const test::TemporaryFolder folder;
  write_file(folder / "x", "");
  EXPECT_TRUE(MappedFile(folder / "x").bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoReadableFile) {
  const test::TemporaryFolder folder;
  const auto problem = [](const std::filesystem::path& path) -> std::string {
    try {
      const MappedFile file(path);
    } catch (const IoError& error) {
      return error.what();
    }
    return "mapped";
  };
  EXPECT_THAT(problem(folder / "none"), Names(folder / "none", std::strerror(ENOENT)));
  EXPECT_THAT(problem(folder.path()), Names(folder.path()));
  EXPECT_THAT(problem("/dev/zero"), Names("/dev/zero"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(problem(folder / "pipe"), Names(folder / "pipe"));
}

TEST(ReadFile, RefusesLargerFilesThanAsked) {
  const test::TemporaryFolder folder;
  write_file(folder / "x", "12345");
  EXPECT_EQ(read_file(folder / "x", 5).size(), 5U);
  EXPECT_THROW(static_cast<void>(read_file(folder / "x", 4)), IoError);
}

TEST(ReadFile, SurvivesAFileThatIsCutWhileItIsRead) {
  const test::TemporaryFolder folder;
  const std::string log(1U << 20, 'x');
  write_file(folder / "log", log);
  std::jthread writer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::filesystem::resize_file(folder / "log", 0);
      std::filesystem::resize_file(folder / "log", log.size());
    }
  });
  for (int i = 0; i < 300; ++i) EXPECT_LE(read_file(folder / "log").size(), log.size());
}

TEST(CreateFolders, CreatesMissingParentsAndAcceptsExistingOnes) {
  const test::TemporaryFolder folder;
  create_folders(folder / "a" / "b" / "c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a" / "b" / "c"));
  create_folders(folder / "a" / "b" / "c");
  create_folders(folder / "a" / "b" / "");
}

TEST(CreateFolders, NamesTheFolderThatFailed) {
  const test::TemporaryFolder folder;
  write_file(folder / "file", "x");
  std::filesystem::create_symlink("loop", folder / "loop");
  const auto problem = [](const std::filesystem::path& path, FileOps& ops) -> std::string {
    try {
      create_folders(path, ops);
    } catch (const IoError& error) {
      return error.what();
    }
    return "created";
  };
  FileOps& real = posix_file_ops();
  EXPECT_THAT(problem(folder / "file", real), Names(folder / "file", std::strerror(ENOTDIR)));
  EXPECT_THAT(problem(folder / "file" / "a", real),
              AllOf(Names(folder / "file", std::strerror(ENOTDIR)), Not(HasSubstr("file/a"))));
  EXPECT_THAT(problem(folder / std::string(300, 'x'), real), Names(std::strerror(ENAMETOOLONG)));
  EXPECT_THAT(problem(folder / "loop" / "a", real),
              AllOf(Names(folder / "loop"), Not(HasSubstr("loop/a"))));
  test::FailingFileOps full(3, ENOSPC);
  EXPECT_THAT(problem(folder / "p" / "q" / "r", full),
              AllOf(Names(folder / "p" / "q", std::strerror(ENOSPC)), Not(HasSubstr("p/q/r"))));
}

}  // namespace
}  // namespace precast
