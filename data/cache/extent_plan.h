#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// A range of a file: [begin, end); empty if a sample has no bytes.
struct FileRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Size in bytes of the buffer for a range. There are only a few sizes, so that buffers can be
/// reused. Each leaves room for the alignment of reads (DiskFile::kDirectAlignment).
[[nodiscard]] PRECAST_API std::uint64_t buffer_bytes(const FileRange& range);

/// One read of a pass: the range to read, and the number of samples that use its bytes. The memory
/// may be released after the last use.
struct Extent {
  FileRange range;
  std::uint32_t uses = 0;
};

/// The reads for all samples of a pass. The order is known, so they are planned in advance.
struct PRECAST_API ExtentPlan {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// Ordered by first use.
  std::vector<Extent> extents;
  /// [samples of the pass]: index of the extent that contains the sample, or kNone.
  std::vector<std::uint32_t> extent_of;
  /// Peak memory in bytes, as counted by buffer_bytes().
  std::uint64_t max_live_bytes = 0;
  std::uint64_t read_bytes = 0;

  [[nodiscard]] std::uint64_t memory_bytes() const {
    return extents.size() * sizeof(Extent) + extent_of.size() * sizeof(std::uint32_t);
  }
};

/// Plans reads of complete pages if each page fits in `capacity_bytes` and all reads together have
/// at most twice the bytes that the samples need. This is the case for orders that use few pages at
/// a time, and for files that fit in memory. Otherwise, plans a separate read for each sample. A
/// page stays in memory from its first to its last use. If the pages in memory would exceed
/// `capacity_bytes`, the page whose next use is furthest away is dropped and read again later
/// (Belady, 1966, "A study of replacement algorithms"). A sample that spans two pages is read
/// separately.
/// @param ranges the bytes that each sample of the pass needs, in order. @param file_bytes a
/// position at or after the end of the last page; no read and no range ends after it.
[[nodiscard]] PRECAST_API ExtentPlan plan_extents(std::span<const FileRange> ranges,
                                                  std::uint64_t page_bytes,
                                                  std::uint64_t file_bytes,
                                                  std::uint64_t capacity_bytes);

}  // namespace precast::data
