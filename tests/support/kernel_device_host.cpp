#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/support/cuda_on_host.h"
#include "tests/support/kernel_device.h"

namespace precast::test {

std::string missing_device() {
  return {};
}

std::shared_ptr<void> device_memory(std::size_t bytes) {
  std::shared_ptr<void> memory(::operator new(bytes), [](void* of) { ::operator delete(of); });
  std::memset(memory.get(), 0xff, bytes);
  return memory;
}

void copy_to_device(void* to, const void* from, std::size_t bytes) {
  std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to));
}

void copy_from_device(void* to, const void* from, std::size_t bytes) {
  std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to));
}

void in_several_orders(const std::function<void()>& launches) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    cuda_on_host::set_thread_order(seed);
    launches();
  }
}

}  // namespace precast::test
