#include "framework/core/failpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

/// Runs `body` in a child process with PRECAST_FAILPOINTS=`armed`, and returns its wait status. The
/// variable is read at the first failpoint, and the parent process never reaches one.
int in_process(const std::string& armed, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("PRECAST_FAILPOINTS", armed.c_str(), 1);
    try {
      ::_exit(body());
    } catch (const Error& error) {
      ::_exit(100 + static_cast<int>(error.exit_code()));
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Failpoint, DoesNothingUnlessArmed) {
  const int status = in_process("beton.before_table=kill", [] {
    failpoint("beton.before_header");
    return 0;
  });
  EXPECT_EQ(exit_code_of(status), 0);
}

TEST(Failpoint, EveryListedOneCanKill) {
  for (const std::string_view name : kFailpoints) {
    const int status = in_process(std::string(name) + "=kill", [&] {
      failpoint(name);
      return 0;
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << name;
    EXPECT_EQ(WTERMSIG(status), SIGKILL) << name;
  }
}

TEST(Failpoint, ActsAtTheGivenPassOnly) {
  const int status = in_process("log.before_line=error@3", [] {
    failpoint("log.before_line");
    failpoint("log.before_line");
    try {
      failpoint("log.before_line");
    } catch (const IoError&) {
      failpoint("log.before_line");
      return 7;
    }
    return 0;
  });
  EXPECT_EQ(exit_code_of(status), 7);
}

TEST(Failpoint, ThrowsAnIoErrorOnError) {
  const int status = in_process("log.before_line=error,beton.before_table=kill", [] {
    failpoint("log.before_line");
    return 0;
  });
  EXPECT_EQ(exit_code_of(status), 100 + static_cast<int>(ExitCode::io));
}

TEST(Failpoint, SleepsForTheGivenTime) {
  const int status = in_process("log.before_line=sleep:50", [] {
    const auto start = std::chrono::steady_clock::now();
    failpoint("log.before_line");
    return std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(50) ? 0 : 1;
  });
  EXPECT_EQ(exit_code_of(status), 0);
}

TEST(Failpoint, RefusesUnknownNamesAndActions) {
  for (const char* armed :
       {"no.such=kill", "log.before_line", "log.before_line=explode", "log.before_line=sleep:soon",
        "log.before_line=sleep:", "log.before_line=kill@soon", "log.before_line=kill@2@3",
        "log.before_line=explode%7", "log.before_line=error,disk.before_read=kil"}) {
    // Reaches another place, so that a misspelt action is found even if it is not due.
    const int status = in_process(armed, [] {
      failpoint("beton.before_header");
      return 0;
    });
    EXPECT_EQ(exit_code_of(status), 100 + static_cast<int>(ExitCode::usage)) << armed;
  }
}

/// A writer that dies before the rename leaves the old file. It does not obstruct a later writer,
/// even if process ids repeat, as they do in containers.
TEST(Failpoint, AKilledWriterLeavesTheOldFile) {
  const test::TemporaryFolder folder;
  const auto path = folder / "x";
  for (const char* armed : {"atomic_file.before_sync=kill", "atomic_file.before_rename=kill"}) {
    const int status = in_process(armed, [&] {
      write_file(path, "new");
      return 0;
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_FALSE(std::filesystem::exists(path)) << armed;
  }
}

}  // namespace
}  // namespace precast
