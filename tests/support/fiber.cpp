#include "tests/support/fiber.h"

#include <sys/mman.h>

#include <csetjmp>
#include <cstdint>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(PRECAST_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace precast::test {
namespace {

/// Large, because sanitizers enlarge stack frames. Memory is used only for the part that is
/// touched.
constexpr std::size_t kStackBytes = 256 << 10;
/// An inaccessible area below the stack: an overflow ends the program instead of corrupting another
/// stack.
constexpr std::size_t kGuardBytes = 4096;

/// Whether switches use setjmp() and longjmp(). swapcontext() saves the signal mask with a system
/// call, which takes most of the time of a test of kernels; setjmp() does not. Sanitizers expect
/// longjmp() to stay on the same stack.
#if defined(__SANITIZE_ADDRESS__) || defined(PRECAST_THREAD_SANITIZER)
constexpr bool kUseLongjmp = false;
#else
constexpr bool kUseLongjmp = true;
#endif

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  void* pages = ::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  pages_ = static_cast<std::byte*>(pages);
  ::mprotect(pages_, kGuardBytes, PROT_NONE);
  ::getcontext(&own_);
  own_.uc_stack.ss_sp = pages_ + kGuardBytes;
  own_.uc_stack.ss_size = kStackBytes;
  // makecontext() passes only integers of type int, so the pointer is passed in two halves.
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  // makecontext() no longer needs uc_stack. If it stayed set, AddressSanitizer would forget the
  // variables on this stack at each switch to it.
  own_.uc_stack = {};
#if defined(PRECAST_THREAD_SANITIZER)
  own_thread_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(pages_ + kGuardBytes, kStackBytes);
#endif
#if defined(PRECAST_THREAD_SANITIZER)
  __tsan_destroy_fiber(own_thread_);
#endif
  ::munmap(pages_, kGuardBytes + kStackBytes);
}

void Fiber::enter(unsigned high, unsigned low) {
  const std::uintptr_t self = (static_cast<std::uintptr_t>(high) << 32) | low;
  reinterpret_cast<Fiber*>(self)->loop();
}

void Fiber::loop() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &caller_stack_, &caller_stack_bytes_);
#endif
  while (true) {
    body_();
    suspend();
  }
}

void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&caller_fake_stack_, pages_ + kGuardBytes, kStackBytes);
#endif
#if defined(PRECAST_THREAD_SANITIZER)
  caller_thread_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_thread_, __tsan_switch_to_fiber_no_sync);
#endif
  switch_to_own();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(caller_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&own_fake_stack_, caller_stack_, caller_stack_bytes_);
#endif
#if defined(PRECAST_THREAD_SANITIZER)
  __tsan_switch_to_fiber(caller_thread_, __tsan_switch_to_fiber_no_sync);
#endif
  switch_to_caller();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own_fake_stack_, &caller_stack_, &caller_stack_bytes_);
#endif
}

void Fiber::switch_to_own() {
  if (!kUseLongjmp) {
    ::swapcontext(&caller_, &own_);
  } else if (_setjmp(caller_jump_) == 0) {
    if (entered_) _longjmp(own_jump_, 1);
    entered_ = true;
    ::setcontext(&own_);
  }
}

void Fiber::switch_to_caller() {
  if (!kUseLongjmp) {
    ::swapcontext(&own_, &caller_);
  } else if (_setjmp(own_jump_) == 0) {
    _longjmp(caller_jump_, 1);
  }
}

}  // namespace precast::test
