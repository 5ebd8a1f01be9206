#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "data/cache/extent_plan.h"
#include "framework/core/export.h"

namespace precast {
class MappedFile;
}

namespace precast::data {

/// Has the kernel read what the next samples of a pass need from a mapped file, before a worker
/// touches it. A page fault would wait for the disk alone, and the kernel would read around it
/// (128 KiB to 8 MiB): in random order the first batches would wait for most of the file, and the
/// disk would idle while the last ones train. Costs next to nothing where the file is cached: then
/// it looks at one sample in kSamplesALook. Thread-safe.
class PRECAST_API ReadAhead {
 public:
  static constexpr std::int64_t kSamplesAhead = 128;
  static constexpr std::int64_t kSamplesALook = 16;

  /// @param file outlives this. @param range_of the bytes that sample number i of the pass needs;
  /// thread-safe. @param first, end the samples of the pass.
  ReadAhead(const MappedFile& file, std::function<FileRange(std::int64_t)> range_of,
            std::int64_t first, std::int64_t end);

  /// Before sample `index` is read: asks for those up to index + kSamplesAhead, each once.
  void reach(std::int64_t index) {
    while (next_.load(std::memory_order_relaxed) < std::min(index + kSamplesAhead, end_)) ask();
  }
  /// Samples that the kernel was asked for so far.
  [[nodiscard]] std::int64_t asked() const { return asked_; }

 private:
  void ask();

  const MappedFile& file_;
  const std::function<FileRange(std::int64_t)> range_of_;
  const std::int64_t end_;
  std::atomic<std::int64_t> next_;
  /// Looks that need no look, because something was missing shortly before.
  std::atomic<int> missing_{0};
  std::atomic<std::int64_t> asked_{0};
};

}  // namespace precast::data
