#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace precast::data {

/// A word in shared memory on which threads of several processes wait (futex). Thread-safe.
class RingSignal {
 public:
  /// Borrows the word.
  explicit RingSignal(std::byte* word)
      : word_(reinterpret_cast<std::atomic<std::uint32_t>*>(word)) {}

  /// Call this first, then check the condition, then call wait() with this value: a raise() in
  /// between is not missed.
  [[nodiscard]] std::uint32_t value() const { return word_->load(std::memory_order_acquire); }
  /// Waits until the word differs from `value`; may return earlier.
  void wait(std::uint32_t value) const;
  /// Like wait(), but not longer than `limit`.
  void wait_for(std::uint32_t value, std::chrono::nanoseconds limit) const;
  /// Changes the word and wakes all waiting threads.
  void raise() const;

 private:
  std::atomic<std::uint32_t>* word_;
};

}  // namespace precast::data
