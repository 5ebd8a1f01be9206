#include "framework/process/stop_signals.h"

#include <unistd.h>

#include "framework/core/error.h"

namespace precast {
namespace {

// A signal handler can only access globals.
std::atomic<bool> g_requested = false;
std::atomic<bool> g_interrupted = false;
std::atomic<int> g_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  if (signal == SIGINT && g_interrupted.exchange(true)) ::_exit(128 + SIGINT);
  g_signal = signal;
  g_requested = true;
}

}  // namespace

bool stays_ignored(int signal, const struct sigaction& before) {
  return before.sa_handler == SIG_IGN && (signal == SIGHUP || signal == SIGTSTP);
}

StopSignals::StopSignals(std::span<const int> signals) {
  g_requested = false;
  g_interrupted = false;
  g_signal = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) {
    Before before{signal, {}};
    require(::sigaction(signal, nullptr, &before.action) == 0, "signals can be handled");
    if (stays_ignored(signal, before.action)) continue;
    ::sigaction(signal, &action, nullptr);
    before_.push_back(before);
  }
}

StopSignals::~StopSignals() {
  for (const Before& before : before_) ::sigaction(before.signal, &before.action, nullptr);
}

const std::atomic<bool>& StopSignals::requested() {
  return g_requested;
}

int StopSignals::exit_code() {
  return 128 + g_signal;
}

}  // namespace precast
