#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "framework/core/export.h"

namespace precast::data {

/// The work of one thread on a sample.
using SampleWork = std::function<void(std::uint64_t sample)>;

/// Options of for_each_sample().
struct EachSample {
  /// At least 1.
  int workers = 1;
  /// Called on the calling thread, about 50 times a second, with the number of finished samples.
  std::function<void(std::uint64_t)> on_progress = {};
  /// May be set by any thread to stop early.
  const std::atomic<bool>* cancel = nullptr;
};

/// Passes each sample from 0 to `count` - 1 to one of the threads, in any order.
/// @param make_work called once for each thread before it begins, so that each thread can have its
/// own scratch memory.
/// @return false if it was cancelled. @throws the exception of the lowest sample that failed;
/// DeviceError if a thread cannot be started.
PRECAST_API bool for_each_sample(std::uint64_t count, const EachSample& how,
                                 const std::function<SampleWork()>& make_work);

}  // namespace precast::data
