#include "data/ring/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "data/ring/ring_error.h"

namespace precast::data {
namespace {

constexpr const char* kSegmentName = "precast-ring";

/// @return an empty span on failure; errno is set.
std::span<std::byte> map_shared(int fd, std::uint64_t offset, std::uint64_t bytes, int protection) {
  void* const at = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return {};
  return {static_cast<std::byte*>(at), bytes};
}

void unmap(std::span<std::byte> mapped) {
  if (!mapped.empty()) ::munmap(mapped.data(), mapped.size());
}

}  // namespace

RingSegment::RingSegment(std::uint64_t bytes, const std::string& name)
    : memfd_(::memfd_create(fmt::format("{}:{}", kSegmentName, name).c_str(),
                            MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const int fd = memfd_.get();
  if (fd < 0) throw IoError("ring: cannot create the memory", kSegmentName, errno);
  int failed = 0;
  do {
    failed = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (failed == EINTR);
  if (failed != 0)
    throw IoError(fmt::format("ring: cannot allocate {} bytes of shared memory", bytes),
                  kSegmentName, failed);
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    throw IoError("ring: cannot seal the memory", kSegmentName, errno);
  memory_ = map_shared(fd, 0, bytes, PROT_READ | PROT_WRITE);
  if (memory_.empty()) throw IoError("ring: cannot map the memory", kSegmentName, errno);
}

RingSegment::RingSegment(OwnedDescriptor memfd) : memfd_(std::move(memfd)) {
  const int fd = memfd_.get();
  if (fd < 0)
    throw RingError(
        "ring: expected a welcome with a memfd, got a welcome without it. The system may have "
        "refused to pass the descriptor on");
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    throw RingError(
        "ring: expected a memfd with F_SEAL_SHRINK, got a descriptor without it. The "
        "producer must add this seal (data/ring/RING.md)");
  struct stat status {};
  if (::fstat(fd, &status) != 0)
    throw IoError("ring: cannot read the size of", kSegmentName, errno);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes < kRingHeaderBytes)
    throw RingError(fmt::format("ring: expected a segment of at least {} bytes, got {}",
                                kRingHeaderBytes, bytes));
  memory_ = map_shared(fd, 0, bytes, PROT_READ);
  if (memory_.empty()) throw IoError("ring: cannot map the memory", kSegmentName, errno);
  try {
    header_ = read_ring_header(memory_);
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    control_at_ = header_.control_offset % page;
    control_pages_ = map_shared(fd, header_.control_offset - control_at_,
                                control_at_ + header_.control_bytes(), PROT_READ | PROT_WRITE);
    if (control_pages_.empty()) throw IoError("ring: cannot map", "the control area", errno);
  } catch (...) {
    unmap(memory_);
    throw;
  }
}

RingSegment::~RingSegment() {
  unmap(control_pages_);
  unmap(memory_);
}

std::byte* RingSegment::control() const {
  return control_pages_.data() + control_at_;
}

}  // namespace precast::data
