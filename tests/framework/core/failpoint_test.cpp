#include "framework/core/failpoint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/child.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast {
namespace {

/// Runs `body` in a child process with PRECAST_FAILPOINTS=`armed`. The variable is read at the
/// first failpoint, and the parent process never reaches one. @return the result of Child::wait().
int run_in_child(const std::string& armed, const std::function<int()>& body) {
  test::Child child([&] {
    ::setenv("PRECAST_FAILPOINTS", armed.c_str(), 1);
    return body();
  });
  return child.wait();
}

TEST(Failpoint, DoesNothingUnlessArmed) {
  const int status = run_in_child("beton.before_table=kill", [] {
    failpoint("beton.before_header");
    return 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(Failpoint, EveryListedOneCanKill) {
  for (const std::string_view name : kFailpoints) {
    const int status = run_in_child(std::string(name) + "=kill", [&] {
      failpoint(name);
      return 0;
    });
    EXPECT_EQ(status, 128 + SIGKILL) << name;
  }
}

TEST(Failpoint, ActsAtTheGivenPassOnly) {
  const int status = run_in_child("log.before_line=error@3", [] {
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
  EXPECT_EQ(status, 7);
}

TEST(Failpoint, ThrowsAnIoErrorOnError) {
  const int status = run_in_child("log.before_line=error,beton.before_table=kill", [] {
    failpoint("log.before_line");
    return 0;
  });
  EXPECT_EQ(status, static_cast<int>(ExitCode::io));
}

TEST(Failpoint, SleepsForTheGivenTime) {
  const int status = run_in_child("log.before_line=sleep:50", [] {
    const auto start = std::chrono::steady_clock::now();
    failpoint("log.before_line");
    return std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(50) ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(Failpoint, RefusesUnknownNamesAndActions) {
  for (const char* armed :
       {"no.such=kill", "log.before_line", "log.before_line=explode", "log.before_line=sleep:soon",
        "log.before_line=sleep:", "log.before_line=kill@soon", "log.before_line=kill@2@3",
        "log.before_line=explode%7", "log.before_line=error,disk.before_read=kil"}) {
    // Reaches a different failpoint, so that a misspelt action is detected even if its failpoint is
    // not reached.
    const int status = run_in_child(armed, [] {
      failpoint("beton.before_header");
      return 0;
    });
    EXPECT_EQ(status, static_cast<int>(ExitCode::usage)) << armed;
  }
}

TEST(Failpoint, AKilledWriterLeavesTheOldFile) {
  const test::TemporaryFolder folder;
  const auto path = folder / "x";
  // write_file() would make this process read PRECAST_FAILPOINTS, once for all its children.
  std::ofstream(path) << "old";
  for (const char* armed : {"atomic_file.before_sync=kill", "atomic_file.before_rename=kill"}) {
    const int status = run_in_child(armed, [&] {
      write_file(path, "new");
      return 0;
    });
    ASSERT_EQ(status, 128 + SIGKILL);
    EXPECT_EQ(test::read_text(path), "old") << armed;
  }
}

}  // namespace
}  // namespace precast
