#include "framework/process/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <span>

namespace precast {
namespace {

void ignore_signal(int) {}

TEST(StopSignalsTest, AskOnceAndAreForgottenByTheNext) {
  {
    const StopSignals signals;
    EXPECT_FALSE(StopSignals::requested());
    ::raise(SIGTERM);
    EXPECT_TRUE(StopSignals::requested());
    EXPECT_EQ(StopSignals::exit_code(), 128 + SIGTERM);
    ::raise(SIGTERM);
    EXPECT_TRUE(StopSignals::requested()) << "batch systems repeat the signal";
  }
  const StopSignals next;
  EXPECT_FALSE(StopSignals::requested());
}

TEST(StopSignalsTest, CatchOnlyTheirOwn) {
  struct sigaction mine {
  }, before{};
  mine.sa_handler = ignore_signal;
  ::sigaction(SIGUSR1, &mine, &before);
  {
    const StopSignals signals;
    ::raise(SIGUSR1);
    EXPECT_FALSE(StopSignals::requested());
  }
  {
    const StopSignals signals(StopSignals::kTraining);
    ::raise(SIGUSR1);
    EXPECT_TRUE(StopSignals::requested());
  }
  ::raise(SIGUSR1);
  struct sigaction after {};
  ::sigaction(SIGUSR1, &before, &after);
  EXPECT_EQ(after.sa_handler, &ignore_signal) << "the previous handler is restored";
}

TEST(StopSignalsTest, AClosedTerminalStopsAProgramUnlessItWasStartedByNohup) {
  auto* const before = std::signal(SIGHUP, SIG_IGN);
  const auto stopped_by_hangup = [](std::span<const int> handled) {
    const StopSignals signals(handled);
    ::raise(SIGHUP);
    return StopSignals::requested().load();
  };
  EXPECT_FALSE(stopped_by_hangup(StopSignals::kCommand));
  EXPECT_FALSE(stopped_by_hangup(StopSignals::kTraining));
  std::signal(SIGHUP, SIG_DFL);
  EXPECT_TRUE(stopped_by_hangup(StopSignals::kCommand));
  EXPECT_EQ(StopSignals::exit_code(), 128 + SIGHUP);
  EXPECT_TRUE(stopped_by_hangup(StopSignals::kTraining));
  std::signal(SIGHUP, before);
}

TEST(StopSignalsDeathTest, ASecondInterruptEndsAtOnce) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        ::raise(SIGINT);
        if (!StopSignals::requested()) ::_exit(1);
        ::raise(SIGINT);
        ::_exit(2);
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

}  // namespace
}  // namespace precast
