#include "framework/engine/watchdog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>

#include "framework/core/error.h"
#include "tests/support/child.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast::engine {
namespace {

using test::Names;
using Clock = std::chrono::steady_clock;

/// How the stalled part describes its state.
constexpr const char* kState = "3 batches are ready";

/// Runs `body` in a child process for up to a minute. @return the result of Child::wait(), and what
/// it printed on standard error.
std::pair<int, std::string> run_in_child(const std::function<void()>& body) {
  const test::TemporaryFolder folder;
  test::Child child([&] {
    ::alarm(60);
    static_cast<void>(std::freopen((folder / "err").c_str(), "w", stderr));
    body();
    return 0;
  });
  const int code = child.wait();
  return {code, test::read_text(folder / "err")};
}

TEST(WatchdogTest, AStalledRunEndsWithItsPositionAndAllStacks) {
  const auto [code, printed] = run_in_child([] {
    Watchdog watchdog(
        std::chrono::seconds(1), [] { return kState; },
        [](const std::string& cause) { std::fprintf(stderr, "peers: %s\n", cause.c_str()); });
    watchdog.tick("epoch 2, step 7");
    std::thread([] { ::pause(); }).join();
  });
  EXPECT_EQ(code, static_cast<int>(ExitCode::stalled));
  EXPECT_THAT(printed, Names("1 s", "epoch 2, step 7", kState));
  EXPECT_EQ(test::occurrences(printed, kState), 2) << "printed here and sent to the other ranks";
  // The main thread, the thread that pauses and the watchdog's thread.
  EXPECT_EQ(test::occurrences(printed, "\nthread "), 3) << printed;
}

TEST(WatchdogTest, ARunThatMakesProgressIsNotEnded) {
  constexpr std::chrono::seconds kLimit{1};
  const auto [code, printed] = run_in_child([&] {
    const auto start = Clock::now();
    // The time of the last tick that has certainly reached the watchdog, and the longest time
    // between two ticks.
    std::atomic<Clock::time_point> last = start;
    std::atomic<Clock::duration> longest = Clock::duration::zero();
    Watchdog watchdog(
        kLimit, [] { return ""; },
        [&](const std::string& /*cause*/) {
          // Reads `last` first, because it is stored after `longest`.
          const Clock::duration since = Clock::now() - last.load();
          // If a busy machine did not run this process for that long, the watchdog is right.
          if (std::max(since, longest.load()) >= kLimit) ::_exit(0);
        });
    while (Clock::now() < start + 2 * kLimit) {
      const auto before = Clock::now();
      watchdog.tick("a step");
      longest = std::max(longest.load(), Clock::now() - last.load());
      last = before;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  EXPECT_EQ(code, 0) << printed;
}

}  // namespace
}  // namespace precast::engine
