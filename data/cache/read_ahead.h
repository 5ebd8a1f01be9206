#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "data/beton/joined_files.h"
#include "data/cache/extent_plan.h"
#include "framework/core/export.h"

namespace precast::data {

/// Asks the kernel to read the bytes of the next samples of a pass from mapped files before a
/// worker accesses them. Without these requests, each page fault would wait for the disk, and the
/// kernel would read 128 KiB to 8 MiB around the memory page. In random order, the first batches
/// would then wait for most of the file, and the disk would be idle during the last batches. At
/// first, ReadAhead only checks whether one of every kSamplesPerCheck samples is cached, which
/// takes almost no time. After the first sample that is not cached, it requests all further samples
/// of the pass, which costs some microseconds per sample. If the file system does not report what
/// is cached, it requests all samples. Thread-safe.
class PRECAST_API ReadAhead {
 public:
  static constexpr std::int64_t kSamplesAhead = 128;
  static constexpr std::int64_t kSamplesPerCheck = 16;

  /// Returns the ranges of the files that sample number i of the pass needs. Must be thread-safe.
  using RangesOf = std::function<std::vector<FileRange>(std::int64_t i)>;

  /// Borrows the files. @param first, end the range of sample numbers in the pass.
  ReadAhead(MappedFiles files, RangesOf ranges_of, std::int64_t first, std::int64_t end);

  /// Call before sample `index` is read: checks or requests the samples up to about index +
  /// kSamplesAhead, each once.
  void advance_to(std::int64_t index) {
    while (next_.load(std::memory_order_relaxed) < std::min(index + kSamplesAhead, end_))
      request_next();
  }
  /// Number of samples requested from the kernel so far.
  [[nodiscard]] std::int64_t requested() const { return requested_; }

 private:
  void request_next();

  const MappedFiles files_;
  const RangesOf ranges_of_;
  const std::int64_t end_;
  std::atomic<std::int64_t> next_;
  /// Whether a sample was found that is not in the system's page cache.
  std::atomic<bool> found_uncached_{false};
  std::atomic<std::int64_t> requested_{0};
};

}  // namespace precast::data
