#include "framework/process/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;

TEST(ChildProcessTest, CollectsBothStreamsAndTheExitCode) {
  const ChildResult result =
      run_child({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, std::chrono::minutes(1));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_FALSE(result.timed_out);
}

TEST(ChildProcessTest, KillsWhatTakesTooLong) {
  const ChildResult result =
      run_child({"/bin/sh", "-c", "exec sleep 100"}, std::chrono::milliseconds(100));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + 9);
}

TEST(ChildProcessTest, SaysWhatCannotBeStarted) {
  const ChildResult result = run_child({"/no/such/program"}, std::chrono::minutes(1));
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_THAT(result.errors, Names("/no/such/program", std::strerror(ENOENT)));
}

}  // namespace
}  // namespace precast
