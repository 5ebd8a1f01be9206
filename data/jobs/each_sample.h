#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "framework/core/export.h"

namespace precast::data {

/// Processes one sample. Each thread has its own function.
using SampleWork = std::function<void(std::uint64_t sample)>;

/// Options of for_each_sample().
struct ForEachOptions {
  /// Number of threads, at least 1.
  int workers = 1;
  /// Called about 50 times a second with the number of finished samples, on the thread that called
  /// for_each_sample().
  std::function<void(std::uint64_t)> on_progress = {};
  /// Any thread or signal handler may set it to stop early. Errors that occur after that are
  /// ignored. Null: not cancelled.
  const std::atomic<bool>* cancel = nullptr;
};

/// Passes each sample from 0 to `count` - 1 to one of the threads, in any order.
/// @param make_work called once for each thread before it begins, so that each thread can have its
/// own scratch memory.
/// @return false if the work was cancelled. @throws the exception of the sample with the lowest id
/// among those that failed before a cancellation; DeviceError if a thread cannot be started.
PRECAST_API bool for_each_sample(std::uint64_t count, const ForEachOptions& options,
                                 const std::function<SampleWork()>& make_work);

}  // namespace precast::data
