#include "framework/process/signal_pipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "framework/process/stop_signals.h"

namespace precast {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// While this object exists, the process ignores a signal.
class Ignored {
 public:
  explicit Ignored(int signal) : signal_(signal), before_(std::signal(signal, SIG_IGN)) {}
  Ignored(const Ignored&) = delete;
  Ignored& operator=(const Ignored&) = delete;
  ~Ignored() { std::signal(signal_, before_); }

 private:
  int signal_;
  void (*before_)(int);
};

bool is_ignored(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

TEST(SignalPipeTest, HandsOutTheSignalsInOrderAndRestoresTheHandlers) {
  const Ignored ignored(SIGUSR1);
  {
    SignalPipe signals({SIGUSR1, SIGTERM});
    ::raise(SIGTERM);
    ::raise(SIGUSR1);
    EXPECT_THAT(signals.take(), ElementsAre(SIGTERM, SIGUSR1));
    EXPECT_THAT(signals.take(), IsEmpty());
  }
  EXPECT_TRUE(is_ignored(SIGUSR1));
}

TEST(SignalPipeTest, OnlyAnIgnoredHangUpAndTerminalStopStayIgnored) {
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGTSTP}) {
    const Ignored ignored(signal);
    SignalPipe signals({signal});
    ::raise(signal);
    if (signal == SIGHUP || signal == SIGTSTP) {
      EXPECT_THAT(signals.take(), IsEmpty()) << signal;
    } else {
      EXPECT_THAT(signals.take(), ElementsAre(signal));
    }
  }
}

TEST(SignalPipeTest, IgnoresTheSameSignalsAsStopSignals) {
  for (const int signal : StopSignals::kTraining) {
    const Ignored ignored(signal);
    SignalPipe signals({signal});
    const bool piped = !is_ignored(signal);
    {
      const Ignored again(signal);
      const StopSignals stop(StopSignals::kTraining);
      EXPECT_EQ(!is_ignored(signal), piped) << signal;
    }
  }
}

}  // namespace
}  // namespace precast
