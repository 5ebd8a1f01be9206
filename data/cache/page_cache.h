#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "data/beton/disk_file.h"
#include "data/beton/joined_files.h"
#include "data/cache/extent_plan.h"
#include "framework/core/export.h"

namespace precast::data {

struct PageCacheOptions {
  /// Maximum memory for the bytes that are read.
  std::uint64_t budget_bytes = std::uint64_t{256} << 20;
  /// Number of threads; each performs one read at a time.
  int readers = 4;
};

/// Reads the bytes of a pass into a limited amount of memory before they are used. Its threads read
/// in the order of the plan. Used bytes stay in memory until the memory is needed for other bytes,
/// so a file whose pages fit into plan_capacity_bytes() is usually read only once, not in every
/// epoch.
///
/// Cannot deadlock: reads get memory in the order of their first use, and the plan's
/// max_live_bytes is at most the budget. Therefore, if no memory is free for the next read, the
/// bytes of all samples before it are in memory or being read, and their memory is released after
/// use. One thread calls begin() and end(); any thread may hold a Use.
class PRECAST_API PageCache {
 public:
  /// Borrows the files.
  PageCache(DiskFiles files, PageCacheOptions options);
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;
  ~PageCache();

  /// The capacity for plan_extents(). It leaves room for reading ahead.
  [[nodiscard]] std::uint64_t plan_capacity_bytes(std::uint64_t page_bytes) const;

  /// Starts a pass; ends a pass that is still running. @throws ConfigError naming a sufficient
  /// budget if the plan needs more than the budget; DeviceError if a thread cannot be started.
  void begin(ExtentPlan plan);
  /// Stops the reader threads. For the rest of this pass, a Use whose bytes have not been read
  /// returns without bytes, even if it is already waiting.
  void interrupt();
  /// Ends a pass. No Use may exist: first call interrupt(), then join the threads that hold them.
  void end();

  /// The bytes of one sample while they are in use.
  class PRECAST_API Use {
   public:
    /// Waits until the bytes of sample number `index` of the pass are in memory. @throws the
    /// exception of the read: IoError, DataError.
    Use(PageCache& cache, std::size_t index);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
    /// Empty for a sample without bytes, and for a read that interrupt() prevented.
    [[nodiscard]] const FileWindow& window() const { return window_; }

   private:
    PageCache& cache_;
    std::size_t index_;
    FileWindow window_;
  };

  [[nodiscard]] std::uint64_t bytes_read() const;
  /// Number of times that a Use had to wait, and the total waiting time.
  [[nodiscard]] std::uint64_t waits() const;
  [[nodiscard]] double seconds_waited() const;
  /// Peak memory in bytes so far.
  [[nodiscard]] std::uint64_t peak_bytes() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace precast::data
