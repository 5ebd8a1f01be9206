#include "data/ring/signal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <limits>

namespace precast::data {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void RingSignal::wait(std::uint32_t value) const {
  ::syscall(SYS_futex, word_, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

void RingSignal::wait_for(std::uint32_t value, std::chrono::nanoseconds limit) const {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
  const timespec relative{.tv_sec = seconds.count(), .tv_nsec = (limit - seconds).count()};
  ::syscall(SYS_futex, word_, FUTEX_WAIT, value, &relative, nullptr, 0);
}

void RingSignal::raise() const {
  word_->fetch_add(1, std::memory_order_acq_rel);
  ::syscall(SYS_futex, word_, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

}  // namespace precast::data
