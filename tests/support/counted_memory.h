#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace precast::test {

/// Bytes that launches read and write. Each byte counts once per launch and kind of access, however
/// often it is accessed. This models a cache that is large enough for all data of a launch.
struct MovedBytes {
  std::size_t read = 0;
  std::size_t written = 0;
  [[nodiscard]] std::size_t total() const { return read + written; }
  bool operator==(const MovedBytes&) const = default;
};

/// Global memory for kernels that run on the host (cuda_on_host.h). Counts the bytes that they
/// move.
///
/// The kernels' sources (*_on_host.cpp) are compiled with -fsanitize=thread, so that the compiler
/// inserts a call of __tsan_read4, __tsan_write16 and the like at each access to memory. The
/// program is not linked with ThreadSanitizer's library; counted_memory.cpp defines these
/// functions. They mark the bytes of arrays of this class as read or written and ignore all other
/// addresses: shared memory, stacks, arguments. In builds with g++, accesses of library functions,
/// such as a memcpy of many bytes, are not counted. Only one object at a time; not thread-safe.
class CountedMemory {
 public:
  CountedMemory();
  ~CountedMemory();
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  /// An array of zeros, aligned to 256 bytes, that lives as long as this object.
  /// @param name distinguishes arrays in count_arrays()
  template <typename T = std::byte>
  T* array(const std::string& name, std::size_t size) {
    return static_cast<T*>(allocate(name, size * sizeof(T)));
  }

  /// Runs `launches`. @return the bytes that its kernels move, summed over the launches.
  MovedBytes count(const std::function<void()>& launches);
  /// Like count(), but separately for each array that is accessed, by name.
  std::map<std::string, MovedBytes> count_arrays(const std::function<void()>& launches);

 private:
  struct Arrays;
  void* allocate(const std::string& name, std::size_t bytes);

  std::unique_ptr<Arrays> arrays_;
};

}  // namespace precast::test
