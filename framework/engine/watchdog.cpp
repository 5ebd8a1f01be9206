#include "framework/engine/watchdog.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/stack_dump.h"

namespace precast::engine {

using Clock = std::chrono::steady_clock;

Watchdog::Watchdog(std::chrono::seconds limit, std::function<std::string()> describe,
                   std::function<void(const std::string&)> on_stall)
    : limit_(limit),
      describe_(std::move(describe)),
      on_stall_(std::move(on_stall)),
      last_tick_(Clock::now()),
      position_("the start"),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

Watchdog::~Watchdog() {
  thread_.request_stop();
  thread_.join();
}

void Watchdog::tick(std::string position) {
  const std::scoped_lock lock(mutex_);
  last_tick_ = Clock::now();
  position_ = std::move(position);
}

void Watchdog::watch(const std::stop_token& stop) {
  constexpr std::chrono::seconds kRound{1};
  std::unique_lock lock(mutex_);
  auto last_round = Clock::now();
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, std::min(kRound, limit_), [] { return false; });
    // A gap this long means that the process was suspended (Ctrl-Z, a suspended job).
    const auto round = Clock::now();
    if (round - std::exchange(last_round, round) > 10 * kRound) last_tick_ = round;
    if (stop.stop_requested() || round < last_tick_ + limit_) continue;
    const std::string position = position_;
    lock.unlock();
    end_process(position);
  }
}

void Watchdog::end_process(const std::string& position) {
  const std::string cause =
      fmt::format("stalled: no progress for {} s at {}. {}", limit_.count(), position, describe_());
  on_stall_(cause);
  log_line("error: " + cause);
  std::fflush(stderr);
  dump_all_stacks(STDERR_FILENO);
  // Destructors would wait for the hanging threads.
  ::_exit(static_cast<int>(ExitCode::stalled));
}

}  // namespace precast::engine
