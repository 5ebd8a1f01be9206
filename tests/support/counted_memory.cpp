#include "tests/support/counted_memory.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>

#include "tests/support/cuda_on_host.h"

namespace precast::test {
namespace {

constexpr std::align_val_t kAlignment{256};
constexpr std::uint8_t kRead = 1, kWritten = 2;

struct Array {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  /// For each byte, how the launch has accessed it.
  std::uint8_t* access = nullptr;
};

// mark() uses plain arrays: a function of the standard library may be the copy that was compiled
// with a kernel, and would call mark() again.
constexpr int kMaxArrays = 32;
Array known[kMaxArrays];
int known_count = 0;
int last_found = 0;

void mark(const volatile void* address, std::size_t bytes, std::uint8_t kind) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (int i = 0; i < known_count; ++i) {
    const int which = (last_found + i) % known_count;
    const Array& array = known[which];
    const std::uintptr_t offset = at - array.begin;  // a lower address wraps around
    if (offset >= array.bytes) continue;
    for (std::size_t b = 0; b < bytes && offset + b < array.bytes; ++b)
      array.access[offset + b] = static_cast<std::uint8_t>(array.access[offset + b] | kind);
    last_found = which;
    return;
  }
}

}  // namespace

struct CountedMemory::Arrays {
  std::array<std::string, kMaxArrays> names;
  std::map<std::string, MovedBytes> moved;

  void finish_launch() {
    for (int i = 0; i < known_count; ++i) {
      const Array& array = known[i];
      MovedBytes& sum = moved[names.at(static_cast<std::size_t>(i))];
      for (std::size_t b = 0; b < array.bytes; ++b) {
        sum.read += (array.access[b] & kRead) != 0 ? 1 : 0;
        sum.written += (array.access[b] & kWritten) != 0 ? 1 : 0;
      }
      std::memset(array.access, 0, array.bytes);
    }
  }
};

CountedMemory::CountedMemory() : arrays_(std::make_unique<Arrays>()) {
  if (known_count != 0) throw std::logic_error("CountedMemory: expected one object, got a second");
  cuda_on_host::set_launch_observer([this] { arrays_->finish_launch(); });
}

CountedMemory::~CountedMemory() {
  cuda_on_host::set_launch_observer({});
  for (; known_count > 0; --known_count) {
    Array& array = known[known_count - 1];
    ::operator delete(reinterpret_cast<void*>(array.begin), kAlignment);
    delete[] array.access;
  }
}

void* CountedMemory::allocate(const std::string& name, std::size_t bytes) {
  if (known_count == kMaxArrays)
    throw std::length_error("CountedMemory: expected at most 32 arrays, got one more");
  void* const memory = ::operator new(bytes, kAlignment);
  std::memset(memory, 0, bytes);
  arrays_->names.at(static_cast<std::size_t>(known_count)) = name;
  known[known_count++] = {reinterpret_cast<std::uintptr_t>(memory), bytes,
                          new std::uint8_t[bytes]()};
  return memory;
}

std::map<std::string, MovedBytes> CountedMemory::count_arrays(
    const std::function<void()>& launches) {
  for (int i = 0; i < known_count; ++i) std::memset(known[i].access, 0, known[i].bytes);
  arrays_->moved.clear();
  launches();
  std::erase_if(arrays_->moved, [](const auto& entry) { return entry.second.total() == 0; });
  return arrays_->moved;
}

MovedBytes CountedMemory::count(const std::function<void()>& launches) {
  MovedBytes sum;
  for (const auto& [name, moved] : count_arrays(launches)) {
    sum.read += moved.read;
    sum.written += moved.written;
  }
  return sum;
}

}  // namespace precast::test

// The functions that g++ and clang++ call with -fsanitize=thread. Their names and types are
// ThreadSanitizer's. Types and names in these macros cannot be in parentheses.
// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses,readability-non-const-parameter)
using precast::test::kRead;
using precast::test::kWritten;
using precast::test::mark;

#define PRECAST_COUNT(name, bytes, kind) \
  void name(void* address) {             \
    mark(address, bytes, kind);          \
  }
#define PRECAST_COUNT_SIZE(bytes)                           \
  PRECAST_COUNT(__tsan_read##bytes, bytes, kRead)           \
  PRECAST_COUNT(__tsan_write##bytes, bytes, kWritten)       \
  PRECAST_COUNT(__tsan_unaligned_read##bytes, bytes, kRead) \
  PRECAST_COUNT(__tsan_unaligned_write##bytes, bytes, kWritten)
#define PRECAST_COUNT_UPDATE(name, type, operation)         \
  type name(volatile type* at, type value, int /*order*/) { \
    mark(at, sizeof(type), kRead | kWritten);               \
    return operation(at, value, __ATOMIC_SEQ_CST);          \
  }
#define PRECAST_COUNT_EXCHANGE(name, type)                                                    \
  int name(volatile type* at, type* expected, type desired, int /*order*/, int /*failing*/) { \
    mark(at, sizeof(type), kRead | kWritten);                                                 \
    return __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_SEQ_CST,        \
                                       __ATOMIC_SEQ_CST);                                     \
  }
#define PRECAST_COUNT_ATOMICS(bits, type)                                                         \
  type __tsan_atomic##bits##_load(const volatile type* at, int /*order*/) {                       \
    mark(at, sizeof(type), kRead);                                                                \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                               \
  void __tsan_atomic##bits##_store(volatile type* at, type value, int /*order*/) {                \
    mark(at, sizeof(type), kWritten);                                                             \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                \
  }                                                                                               \
  PRECAST_COUNT_UPDATE(__tsan_atomic##bits##_exchange, type, __atomic_exchange_n)                 \
  PRECAST_COUNT_UPDATE(__tsan_atomic##bits##_fetch_add, type, __atomic_fetch_add)                 \
  PRECAST_COUNT_UPDATE(__tsan_atomic##bits##_fetch_sub, type, __atomic_fetch_sub)                 \
  PRECAST_COUNT_UPDATE(__tsan_atomic##bits##_fetch_and, type, __atomic_fetch_and)                 \
  PRECAST_COUNT_UPDATE(__tsan_atomic##bits##_fetch_or, type, __atomic_fetch_or)                   \
  PRECAST_COUNT_UPDATE(__tsan_atomic##bits##_fetch_xor, type, __atomic_fetch_xor)                 \
  PRECAST_COUNT_EXCHANGE(__tsan_atomic##bits##_compare_exchange_strong, type)                     \
  PRECAST_COUNT_EXCHANGE(__tsan_atomic##bits##_compare_exchange_weak, type)                       \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* at, type expected, type desired, \
                                                  int order, int failing) {                       \
    __tsan_atomic##bits##_compare_exchange_strong(at, &expected, desired, order, failing);        \
    return expected;                                                                              \
  }

extern "C" {
PRECAST_COUNT(__tsan_read1, 1, kRead)
PRECAST_COUNT(__tsan_write1, 1, kWritten)
PRECAST_COUNT_SIZE(2)
PRECAST_COUNT_SIZE(4)
PRECAST_COUNT_SIZE(8)
PRECAST_COUNT_SIZE(16)
PRECAST_COUNT(__tsan_vptr_read, sizeof(void*), kRead)
PRECAST_COUNT_ATOMICS(8, std::uint8_t)
PRECAST_COUNT_ATOMICS(16, std::uint16_t)
PRECAST_COUNT_ATOMICS(32, std::uint32_t)
PRECAST_COUNT_ATOMICS(64, std::uint64_t)

void __tsan_vptr_update(void* address, void* /*value*/) {
  mark(address, sizeof(void*), kWritten);
}
void __tsan_read_range(void* address, std::size_t bytes) {
  mark(address, bytes, kRead);
}
void __tsan_write_range(void* address, std::size_t bytes) {
  mark(address, bytes, kWritten);
}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  mark(from, bytes, kRead);
  mark(to, bytes, kWritten);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  mark(from, bytes, kRead);
  mark(to, bytes, kWritten);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  mark(to, bytes, kWritten);
  return std::memset(to, value, bytes);
}
void __tsan_init() {}
void __tsan_func_entry(void* /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_atomic_thread_fence(int /*order*/) {}
void __tsan_atomic_signal_fence(int /*order*/) {}
}
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses,readability-non-const-parameter)
