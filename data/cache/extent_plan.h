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

/// Memory needed to hold a range. Takes one of few sizes, so that memory is reused, and leaves room
/// for reads that must be aligned (DiskFile::kDirectAlignment).
[[nodiscard]] PRECAST_API std::uint64_t buffer_bytes(const FileRange& range);

/// One read of a pass: what it reads and how many samples use it before it may be released.
struct Extent {
  FileRange range;
  std::uint32_t uses = 0;
};

/// The reads that serve the samples of a pass, planned before it starts because the order is known.
struct PRECAST_API ExtentPlan {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// Ordered by first use.
  std::vector<Extent> extents;
  /// [samples of the pass]: index of the extent that holds the sample, or kNone.
  std::vector<std::uint32_t> extent_of;
  /// Most memory, as buffer_bytes() counts, that is held at once.
  std::uint64_t most_live_bytes = 0;
  std::uint64_t read_bytes = 0;

  [[nodiscard]] std::uint64_t memory_bytes() const {
    return extents.size() * sizeof(Extent) + extent_of.size() * sizeof(std::uint32_t);
  }
};

/// Plans reads of whole pages where that pays (orders that stay on few pages, files that fit), else
/// each sample's bytes alone. A page stays from its first to its last use, unless more than
/// `capacity_bytes` would stay: then the page whose next use is furthest away is dropped and read
/// again later (Belady, 1966, "A study of replacement algorithms"). A sample that spans two pages
/// is read by itself.
/// @param ranges what each sample of the pass needs, in order. @param file_bytes end of the last
/// page; no range ends after it.
[[nodiscard]] PRECAST_API ExtentPlan plan_extents(std::span<const FileRange> ranges,
                                                  std::uint64_t page_bytes,
                                                  std::uint64_t file_bytes,
                                                  std::uint64_t capacity_bytes);

}  // namespace precast::data
