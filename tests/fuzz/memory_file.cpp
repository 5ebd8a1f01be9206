#include "tests/fuzz/memory_file.h"

#include <algorithm>

namespace precast::fuzz {
namespace {

constexpr int kDescriptor = 1000;

}  // namespace

int MemoryFile::create_exclusive(const char*) {
  bytes_.clear();
  return kDescriptor;
}

int MemoryFile::open_append(const char*) {
  return kDescriptor;
}

std::ptrdiff_t MemoryFile::write(int, const void* data, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), from, from + size);
  return static_cast<std::ptrdiff_t>(size);
}

std::ptrdiff_t MemoryFile::pwrite(int, const void* data, std::size_t size, std::int64_t offset) {
  const auto at = static_cast<std::size_t>(offset);
  bytes_.resize(std::max(bytes_.size(), at + size));
  const auto* from = static_cast<const std::byte*>(data);
  std::copy(from, from + size, bytes_.begin() + offset);
  return static_cast<std::ptrdiff_t>(size);
}

int MemoryFile::ftruncate(int, std::int64_t size) {
  bytes_.resize(static_cast<std::size_t>(size));
  return 0;
}

}  // namespace precast::fuzz
