#include "data/jobs/each_sample.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "framework/core/cancel.h"
#include "framework/core/error.h"
#include "framework/core/failpoint.h"

namespace precast::data {
namespace {

constexpr auto kProgressPeriod = std::chrono::milliseconds(20);

/// The state that all threads share.
class SampleLoop {
 public:
  SampleLoop(std::uint64_t count, int threads, const std::atomic<bool>* cancel)
      : end_(count), running_(threads), cancel_(cancel) {}

  void work(const SampleWork& work) {
    for (std::uint64_t sample = next_++; sample < end_; sample = next_++) {
      if (is_set(cancel_)) {
        cancelled_ = true;
        break;
      }
      try {
        failpoint("each_sample.before_sample");
        work(sample);
      } catch (...) {
        // A cancellation can make samples fail: it interrupts requests to a server.
        if (is_set(cancel_)) {
          cancelled_ = true;
          break;
        }
        fail(sample, std::current_exception());
      }
      ++done_;
    }
    const std::scoped_lock lock(mutex_);
    --running_;
    ended_.notify_all();
  }
  void stop() { end_ = 0; }
  /// Waits for at most kProgressPeriod. @return whether all threads have finished.
  bool wait() {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, kProgressPeriod, [this] { return running_ == 0; });
  }
  [[nodiscard]] std::uint64_t done() const { return done_; }
  [[nodiscard]] bool cancelled() const { return cancelled_; }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void fail(std::uint64_t sample, std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    if (sample >= failed_) return;
    failed_ = sample;
    end_ = std::min<std::uint64_t>(end_, sample);
    failure_ = std::move(failure);
  }

  std::atomic<std::uint64_t> next_{0}, done_{0};
  /// Samples from this id on need not be processed: `count` or, after a failure, the lowest id that
  /// failed.
  std::atomic<std::uint64_t> end_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int running_;
  const std::atomic<bool>* cancel_;
  std::atomic<bool> cancelled_{false};
  std::uint64_t failed_ = UINT64_MAX;
  std::exception_ptr failure_;
};

}  // namespace

bool for_each_sample(std::uint64_t count, const ForEachOptions& options,
                     const std::function<SampleWork()>& make_work) {
  require(options.workers >= 1, "there is at least one worker");
  std::vector<SampleWork> works;
  for (int i = 0; i < options.workers; ++i) works.push_back(make_work());
  SampleLoop round(count, options.workers, options.cancel);
  std::vector<std::jthread> threads;
  try {
    for (const SampleWork& work : works) threads.emplace_back([&] { round.work(work); });
  } catch (const std::system_error& error) {
    round.stop();
    throw DeviceError(fmt::format("workers: cannot start worker {} of {}: {}. Use fewer workers",
                                  threads.size() + 1, options.workers, error.code().message()));
  }
  while (!round.wait())
    if (options.on_progress) options.on_progress(round.done());
  threads.clear();
  round.rethrow();
  return !round.cancelled();
}

}  // namespace precast::data
