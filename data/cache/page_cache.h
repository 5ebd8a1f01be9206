#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "data/beton/disk_file.h"
#include "data/cache/extent_plan.h"
#include "framework/core/export.h"

namespace precast::data {

struct PageCacheOptions {
  /// Memory for what is read; never more.
  std::uint64_t budget_bytes = std::uint64_t{256} << 20;
  /// Reads that may be under way at once, each in a thread.
  int readers = 4;
};

/// Brings what a pass needs into memory of a stated size, ahead of its use, by threads that read in
/// the order of the plan. What was used stays until its memory is needed, so that a file smaller
/// than the budget is read once, not once an epoch.
///
/// Cannot get stuck: reads get memory in the order of their first use, so where none is free, every
/// sample before the next read's is served and its memory comes back; the plan's most_live_bytes
/// are at most the budget. begin() and end() by one thread; a Use by any.
class PRECAST_API PageCache {
 public:
  /// Borrows `file`.
  PageCache(const DiskFile& file, PageCacheOptions options);
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;
  ~PageCache();

  /// What plan_extents() may count on: leaves room to read ahead.
  [[nodiscard]] std::uint64_t plan_capacity_bytes(std::uint64_t page_bytes) const;

  /// Starts a pass. end() comes first if one is running. @throws ConfigError naming the budget that
  /// would do if one read is larger than the budget; DeviceError if a thread cannot be started.
  void begin(ExtentPlan plan);
  /// Lets every Use come without bytes, now and later in this pass; readers stop.
  void interrupt();
  /// Ends a pass. No Use may be left: first interrupt(), then join their threads.
  void end();

  /// The bytes of one sample while they are in use.
  class PRECAST_API Use {
   public:
    /// Waits until the bytes of sample number `index` of the pass are there. @throws what the read
    /// threw: IoError, DataError.
    Use(PageCache& cache, std::size_t index);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
    /// Empty for a sample without bytes and after interrupt().
    [[nodiscard]] const FileWindow& window() const { return window_; }

   private:
    PageCache& cache_;
    std::size_t index_;
    FileWindow window_;
  };

  [[nodiscard]] std::uint64_t bytes_read() const;
  /// How often a Use had to wait, and how long in all.
  [[nodiscard]] std::uint64_t waits() const;
  [[nodiscard]] double seconds_waited() const;
  /// Memory in use at most so far.
  [[nodiscard]] std::uint64_t peak_bytes() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace precast::data
