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

bool stays_ignored(int signal, const struct sigaction& before) {
  return before.sa_handler == SIG_IGN && (signal == SIGHUP || signal == SIGTSTP);
}

}  // namespace

SignalHandlers::SignalHandlers(std::span<const int> signals, const struct sigaction& action) {
  for (const int signal : signals) {
    struct sigaction before {};
    require(::sigaction(signal, nullptr, &before) == 0, "signals can be handled");
    if (stays_ignored(signal, before)) continue;
    ::sigaction(signal, &action, nullptr);
    saved_actions_.emplace_back(signal, before);
  }
}

SignalHandlers::~SignalHandlers() {
  for (const auto& [signal, before] : saved_actions_) ::sigaction(signal, &before, nullptr);
}

StopSignals::StopSignals(std::span<const int> signals) {
  g_requested = false;
  g_interrupted = false;
  g_signal = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  handlers_.emplace(signals, action);
}

const std::atomic<bool>& StopSignals::requested() {
  return g_requested;
}

int StopSignals::exit_code() {
  return 128 + g_signal;
}

}  // namespace precast
