#include "framework/process/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child.h"
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

TEST(ChildProcessTest, KeepsAsManyBytesOfEachStreamAsItIsTold) {
  const std::vector<std::string> command = {
      "/bin/sh", "-c", "head -c 1500000 /dev/zero; head -c 1500000 /dev/zero >&2"};
  const ChildResult less = run_child(command, std::chrono::minutes(1));
  EXPECT_EQ(less.exit_code, 0);
  EXPECT_EQ(less.output.size(), 1'000'000U);
  EXPECT_EQ(less.errors.size(), 1'000'000U);
  const ChildResult all = run_child(command, std::chrono::minutes(1), 2'000'000);
  EXPECT_EQ(all.output.size(), 1'500'000U);
  EXPECT_EQ(all.errors.size(), 1'500'000U);
}

TEST(ChildProcessTest, KillsWhatTakesTooLong) {
  const ChildResult result =
      run_child({"/bin/sh", "-c", "exec sleep 100"}, std::chrono::milliseconds(100));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + 9);
}

TEST(ChildProcessTest, KillsAProgramThatHasClosedItsOutput) {
  const std::vector<std::string> command = {"/bin/sh", "-c", "exec >&- 2>&-; sleep 1000"};
  const auto start = std::chrono::steady_clock::now();
  const ChildResult late = run_child(command, std::chrono::seconds(1));
  EXPECT_TRUE(late.timed_out);
  EXPECT_EQ(late.exit_code, 128 + SIGKILL);
  std::atomic<bool> stop = false;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop = true;
  });
  const ChildResult stopped = run_child(command, std::chrono::minutes(5), 1'000'000, &stop);
  stopper.join();
  EXPECT_FALSE(stopped.timed_out);
  EXPECT_EQ(stopped.exit_code, 128 + SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));
}

TEST(ChildProcessTest, AProgramMayCloseItsOutputBeforeItEnds) {
  const ChildResult result = run_child(
      {"/bin/sh", "-c", "echo out; exec >&- 2>&-; sleep 0.1; exit 3"}, std::chrono::minutes(1));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_FALSE(result.timed_out);
}

TEST(ChildProcessTest, KillsAProgramOnRequest) {
  std::atomic<bool> stop = false;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop = true;
  });
  const ChildResult result =
      run_child({"/bin/sh", "-c", "exec sleep 100"}, std::chrono::minutes(1), 1'000'000, &stop);
  stopper.join();
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
}

/// Waits until this process has no child. @return the statuses with which its children ended. After
/// 10 s, kills those of `started` that still run; the result does not contain them.
std::map<pid_t, int> reap_all(const std::vector<pid_t>& started) {
  std::map<pid_t, int> ended;
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  pid_t child = waitpid(-1, &status, WNOHANG);
  for (; child >= 0; child = waitpid(-1, &status, WNOHANG)) {
    if (child > 0) {
      ended[child] = status;
    } else if (std::chrono::steady_clock::now() > deadline) {
      break;
    } else {
      std::this_thread::yield();
    }
  }
  for (const pid_t process : started) {
    if (child == 0 && ended.count(process) == 0) kill(process, SIGKILL);
  }
  return ended;
}

TEST(ChildProcessTest, KillsTheDescendantsToo) {
  const test::Reaper reaper;
  // The shell starts a child, and a grandchild that leads its own session.
  const std::string script = "sleep 100 & echo $!; sh -c 'setsid sleep 100 & echo $!; wait' & wait";
  std::vector<pid_t> started;
  std::map<pid_t, int> ended;
  // On a busy machine, the shells may need more time to start both.
  for (std::chrono::milliseconds timeout(250); started.size() < 2; timeout *= 2) {
    ASSERT_LT(timeout, std::chrono::minutes(1));
    const ChildResult result = run_child({"/bin/sh", "-c", script}, timeout);
    ASSERT_TRUE(result.timed_out) << result.errors;
    std::istringstream ids(result.output);
    started.assign(std::istream_iterator<pid_t>(ids), {});
    ended = reap_all(started);
  }
  for (const pid_t process : started) {
    ASSERT_EQ(ended.count(process), 1U);
    EXPECT_TRUE(WIFSIGNALED(ended[process]) && WTERMSIG(ended[process]) == SIGKILL) << process;
  }
}

TEST(ChildProcessTest, NamesAProgramThatCannotBeStarted) {
  const ChildResult result = run_child({"/no/such/program"}, std::chrono::minutes(1));
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_THAT(result.errors, Names("/no/such/program", std::strerror(ENOENT)));
}

}  // namespace
}  // namespace precast
