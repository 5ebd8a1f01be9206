#include "data/loader/buffer_pool.h"

#include <new>
#include <utility>

namespace precast::data {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

/// Outlives the pool as long as buffers are in use.
struct BufferPool::Shared {
  explicit Shared(BufferAllocator buffer_allocator) : allocator(std::move(buffer_allocator)) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { free_all(); }

  void free_all() {
    for (std::byte* buffer : idle) allocator.release(buffer);
    idle.clear();
  }

  void give_back(std::byte* buffer, std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    if (bytes == size) {
      idle.push_back(buffer);
    } else {
      allocator.release(buffer);
    }
  }

  const BufferAllocator allocator;
  std::mutex mutex;
  std::size_t size = 0;
  std::vector<std::byte*> idle;
};

BufferAllocator heap_allocator() {
  return {
      [](std::size_t bytes) { return static_cast<std::byte*>(::operator new(bytes, kAlignment)); },
      [](std::byte* buffer) { ::operator delete(buffer, kAlignment); }};
}

BufferPool::BufferPool(BufferAllocator allocator)
    : shared_(std::make_shared<Shared>(std::move(allocator))) {}

BufferPool::~BufferPool() = default;

void BufferPool::set_size(std::size_t bytes) {
  const std::scoped_lock lock(shared_->mutex);
  if (bytes == shared_->size) return;
  shared_->free_all();
  shared_->size = bytes;
}

std::shared_ptr<std::byte> BufferPool::take() {
  std::byte* buffer = nullptr;
  std::size_t bytes = 0;
  {
    const std::scoped_lock lock(shared_->mutex);
    bytes = shared_->size;
    if (!shared_->idle.empty()) {
      buffer = shared_->idle.back();
      shared_->idle.pop_back();
    }
  }
  if (buffer == nullptr) buffer = shared_->allocator.allocate(bytes);
  return {buffer,
          [shared = shared_, bytes](std::byte* returned) { shared->give_back(returned, bytes); }};
}

}  // namespace precast::data
