#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/ring/item.h"
#include "data/ring/ring_socket.h"

namespace precast::data {

/// The mapped memory of a ring: a memfd that cannot shrink, so that reading it never fails.
class RingSegment {
 public:
  /// Creates a segment of zeros and allocates all its memory. @param name shown in /proc/PID/maps.
  /// @throws IoError if there is not enough memory.
  RingSegment(std::uint64_t bytes, const std::string& name);
  /// Maps another process's segment: read-only, and its control area for writing.
  /// @throws RingError if it is not sealed or its header is invalid; IoError if it cannot be
  /// mapped.
  explicit RingSegment(OwnedDescriptor memfd);
  RingSegment(const RingSegment&) = delete;
  RingSegment& operator=(const RingSegment&) = delete;
  ~RingSegment();

  /// All bytes of the segment. Read-only if the second constructor mapped them.
  [[nodiscard]] std::span<std::byte> memory() const { return memory_; }
  /// The checked header and the control area of another process's segment. @{
  [[nodiscard]] const RingHeader& header() const { return header_; }
  [[nodiscard]] std::byte* control() const;
  /// @}
  [[nodiscard]] int descriptor() const { return memfd_.get(); }

 private:
  OwnedDescriptor memfd_;
  std::span<std::byte> memory_;
  RingHeader header_;
  /// A second, writable mapping of the pages that contain the control area.
  std::span<std::byte> control_pages_;
  std::uint64_t control_at_ = 0;
};

}  // namespace precast::data
