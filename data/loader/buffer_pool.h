#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace precast::data {

/// Allocates and releases the memory of batches, which is page-locked if a GPU copies from it.
struct BufferAllocator {
  std::function<std::byte*(std::size_t bytes)> allocate;
  std::function<void(std::byte*)> release;
};

/// Ordinary memory, aligned to 64 bytes.
[[nodiscard]] BufferAllocator heap_allocator();

/// Recycles buffers of one size. A buffer returns to the pool when its last owner releases it, in
/// any thread. Buffers may outlive the pool. Thread-safe.
class BufferPool {
 public:
  explicit BufferPool(BufferAllocator allocator);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  /// Sets the size in bytes of the buffers that take() returns. Buffers of a different size are
  /// freed: idle buffers now, buffers in use when they are returned.
  void set_size(std::size_t bytes);
  [[nodiscard]] std::shared_ptr<std::byte> take();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace precast::data
