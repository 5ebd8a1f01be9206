#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// A stretch of a file: [begin, end); empty where a sample has no bytes.
struct FileRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Memory that holding a range takes: of few different sizes, so that memory is used again, and
/// with room for reads that must be aligned (DiskFile::kDirectAlignment).
[[nodiscard]] PRECAST_API std::uint64_t buffer_bytes(const FileRange& range);

/// One read of a pass, in order: what it brings and how many samples use it before it may go.
struct Extent {
  FileRange range;
  std::uint32_t uses = 0;
};

/// Which reads serve the samples of a pass, known before it starts because the order is.
struct PRECAST_API ExtentPlan {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// By first use.
  std::vector<Extent> extents;
  /// [samples of the pass]: index of the extent that holds the sample, or kNone.
  std::vector<std::uint32_t> extent_of;
  /// Most memory, as buffer_bytes() counts, that must be held at once.
  std::uint64_t most_live_bytes = 0;
  std::uint64_t read_bytes = 0;

  [[nodiscard]] std::uint64_t memory_bytes() const {
    return extents.size() * sizeof(Extent) + extent_of.size() * sizeof(std::uint32_t);
  }
};

/// Plans whole pages where that pays (orders that stay on few pages, files that fit), else each
/// sample's bytes alone. A page stays from its first to its last use, unless more than
/// `capacity_bytes` would stay: then the one whose next use is furthest goes and is read again
/// (Belady, 1966, "A study of replacement algorithms"). A sample whose bytes lie in two pages is
/// read by itself.
/// @param ranges what each sample of the pass needs, in order. @param file_bytes where pages end at
/// the latest; no range ends behind it.
[[nodiscard]] PRECAST_API ExtentPlan plan_extents(std::span<const FileRange> ranges,
                                                  std::uint64_t page_bytes,
                                                  std::uint64_t file_bytes,
                                                  std::uint64_t capacity_bytes);

}  // namespace precast::data
