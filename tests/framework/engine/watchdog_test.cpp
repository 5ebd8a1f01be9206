#include "framework/engine/watchdog.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "framework/core/error.h"
#include "tests/support/temporary_folder.h"

namespace precast::engine {
namespace {

/// The exit code of a process that runs `body`, and what it printed on standard error.
std::pair<int, std::string> in_process(const std::function<void()>& body) {
  const test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(std::freopen((folder / "err").c_str(), "w", stderr));
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::ifstream file(folder / "err");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {std::istreambuf_iterator<char>(file), {}}};
}

TEST(WatchdogTest, ARunThatStandsStillEndsWithItsPlaceAndAllStacks) {
  const auto [code, printed] = in_process([] {
    std::string told;
    Watchdog watchdog(
        std::chrono::seconds(1), [] { return "3 batches are ready"; },
        [&](const std::string& cause) { told = cause; });
    watchdog.tick("epoch 2, step 7");
    std::thread([] { std::this_thread::sleep_for(std::chrono::seconds(30)); }).join();
  });
  EXPECT_EQ(code, static_cast<int>(ExitCode::stalled));
  for (const char* part : {"no progress for 1 s at epoch 2, step 7", "3 batches are ready"})
    EXPECT_NE(printed.find(part), std::string::npos) << printed;
  // The main thread, the sleeping one and the watchdog's.
  std::size_t threads = 0;
  for (std::size_t at = printed.find("\nthread "); at != std::string::npos;
       at = printed.find("\nthread ", at + 1))
    ++threads;
  EXPECT_EQ(threads, 3U) << printed;
}

TEST(WatchdogTest, ARunThatMovesIsLeftAlone) {
  const auto [code, printed] = in_process([] {
    Watchdog watchdog(
        std::chrono::seconds(1), [] { return ""; }, [](const std::string& /*cause*/) {});
    for (int i = 0; i < 15; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      watchdog.tick("a step");
    }
  });
  EXPECT_EQ(code, 0) << printed;
}

}  // namespace
}  // namespace precast::engine
