#include "framework/engine/stop_signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "framework/core/error.h"

namespace precast::engine {
namespace {

constexpr std::array kSignals = {SIGTERM, SIGUSR1, SIGINT};
constexpr int kInterrupted = 128 + SIGINT;

// A signal handler reaches nothing but these.
std::atomic<bool> g_requested = false;
std::atomic<bool> g_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

std::array<struct sigaction, kSignals.size()> g_before;

void on_signal(int signal) {
  if (signal == SIGINT && g_interrupted.exchange(true)) ::_exit(kInterrupted);
  g_requested = true;
}

}  // namespace

StopSignals::StopSignals() {
  g_requested = false;
  g_interrupted = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    require(::sigaction(kSignals[i], &action, &g_before[i]) == 0, "signals can be handled");
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &g_before[i], nullptr);
}

bool StopSignals::requested() {
  return g_requested;
}

}  // namespace precast::engine
