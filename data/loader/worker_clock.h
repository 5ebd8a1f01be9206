#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace precast::data {

/// Records how one thread spends its time. Only that thread writes; any thread may read. Each
/// object has its own cache line. It reads the system's clocks only around waits and once every 64
/// samples.
class alignas(64) WorkerClock {
 public:
  /// Call at the start of the thread.
  void start() {
    last_ = std::chrono::steady_clock::now();
    last_cpu_ns_ = thread_cpu_ns();
  }
  /// Adds the time since the last call of start() or of one of these functions to busy() or
  /// waiting(). @{
  void end_busy() { add_elapsed(busy_ns_); }
  void end_waiting() { add_elapsed(waiting_ns_); }
  /// @}
  /// Call for every sample. @param stored_bytes total size of its blobs.
  void count(std::uint64_t stored_bytes) {
    add<std::int64_t>(samples_, 1);
    add(stored_bytes_, stored_bytes);
    if (samples_.load(std::memory_order_relaxed) % kSamplesPerUpdate == 0) end_busy();
  }

  [[nodiscard]] double busy() const { return 1e-9 * static_cast<double>(busy_ns_.load()); }
  [[nodiscard]] double waiting() const { return 1e-9 * static_cast<double>(waiting_ns_.load()); }
  [[nodiscard]] double cpu() const { return 1e-9 * static_cast<double>(cpu_ns_.load()); }
  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] std::uint64_t stored_bytes() const { return stored_bytes_; }

 private:
  static constexpr std::int64_t kSamplesPerUpdate = 64;

  static std::int64_t thread_cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  /// There is only one writer, so no atomic read-modify-write is needed.
  template <typename T>
  static void add(std::atomic<T>& counter, T value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  void add_elapsed(std::atomic<std::int64_t>& counter) {
    const auto now = std::chrono::steady_clock::now();
    const std::int64_t cpu_ns = thread_cpu_ns();
    add<std::int64_t>(counter,
                      std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count());
    add(cpu_ns_, cpu_ns - last_cpu_ns_);
    last_ = now;
    last_cpu_ns_ = cpu_ns;
  }

  std::chrono::steady_clock::time_point last_;
  std::int64_t last_cpu_ns_ = 0;
  std::atomic<std::int64_t> busy_ns_{0};
  std::atomic<std::int64_t> waiting_ns_{0};
  std::atomic<std::int64_t> cpu_ns_{0};
  std::atomic<std::int64_t> samples_{0};
  std::atomic<std::uint64_t> stored_bytes_{0};
};

}  // namespace precast::data
