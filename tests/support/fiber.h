#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>
#include <functional>

namespace precast::test {

/// A function with a separate stack that takes turns with its caller on one system thread. Switches
/// are announced to AddressSanitizer and ThreadSanitizer. ThreadSanitizer treats each fiber as a
/// thread and does not regard a switch as synchronisation: whatever orders the accesses of two
/// fibers must be announced with __tsan_release and __tsan_acquire.
class Fiber {
 public:
  /// @param body called by the first resume(), and again by the next resume() after it has
  /// returned. Must not throw.
  explicit Fiber(std::function<void()> body);
  /// If the body has not returned, it is abandoned: objects on its stack are not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Continues the body until it suspends or returns.
  void resume();
  /// Called by the body: returns to the caller of resume().
  void suspend();

 private:
  static void enter(unsigned high, unsigned low);
  [[noreturn]] void loop();
  void switch_to_own();
  void switch_to_caller();

  std::function<void()> body_;
  std::byte* pages_ = nullptr;
  ucontext_t own_{};
  ucontext_t caller_{};
  std::jmp_buf own_jump_{};
  std::jmp_buf caller_jump_{};
  bool entered_ = false;
  // State of the sanitizers.
  void* own_fake_stack_ = nullptr;
  void* caller_fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
  void* own_thread_ = nullptr;
  void* caller_thread_ = nullptr;
};

}  // namespace precast::test
