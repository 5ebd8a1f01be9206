#include "tools/stop_signals.h"

#include <csignal>

namespace precast::tools {
namespace {

// Signal handlers can reach nothing but globals.
std::atomic<bool> stop_asked{false};
volatile std::sig_atomic_t stop_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_stop_signal(int signal) {
  stop_signal = signal;
  stop_asked.store(true);
}

}  // namespace

StopSignals::StopSignals() {
  stop_asked.store(false);
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, &interrupt_);
  ::sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTERM, &terminate_, nullptr);
}

const std::atomic<bool>& StopSignals::asked() const {
  return stop_asked;
}

int StopSignals::exit_code() const {
  return 128 + stop_signal;
}

}  // namespace precast::tools
