#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "data/cache/extent_plan.h"
#include "framework/core/export.h"

namespace precast {
class MappedFile;
}

namespace precast::data {

/// Has the kernel read what the next samples of a pass need from a mapped file, before a worker
/// touches it. A page fault would wait for the disk alone, and the kernel would read around it
/// (128 KiB to 8 MiB): in random order the first batches would wait for most of the file, and the
/// disk would idle while the last ones train. Looks at one sample in kSamplesALook, which costs
/// next to nothing, and from the first that is missing on asks for all of the pass, which costs
/// some microseconds each; for all at once where the file system does not tell what is cached.
/// Thread-safe.
class PRECAST_API ReadAhead {
 public:
  static constexpr std::int64_t kSamplesAhead = 128;
  static constexpr std::int64_t kSamplesALook = 16;

  /// The stretches of the file that sample number i of the pass needs. Thread-safe.
  using RangesOf = std::function<std::vector<FileRange>(std::int64_t i)>;

  /// @param file outlives this. @param first, end the samples of the pass.
  ReadAhead(const MappedFile& file, RangesOf ranges_of, std::int64_t first, std::int64_t end);

  /// Before sample `index` is read: asks for those up to index + kSamplesAhead, each once.
  void reach(std::int64_t index) {
    while (next_.load(std::memory_order_relaxed) < std::min(index + kSamplesAhead, end_)) ask();
  }
  /// Samples that the kernel was asked for so far.
  [[nodiscard]] std::int64_t asked() const { return asked_; }

 private:
  void ask();

  const MappedFile& file_;
  const RangesOf ranges_of_;
  const std::int64_t end_;
  std::atomic<std::int64_t> next_;
  /// A sample of the pass was not in memory.
  std::atomic<bool> missing_{false};
  std::atomic<std::int64_t> asked_{0};
};

}  // namespace precast::data
