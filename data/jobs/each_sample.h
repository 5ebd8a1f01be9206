#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "framework/core/export.h"

namespace precast::data {

/// What one thread does with a sample.
using SampleWork = std::function<void(std::uint64_t sample)>;

/// How for_each_sample() goes about it.
struct EachSample {
  /// At least 1.
  int workers = 1;
  /// Called on the calling thread, about 50 times a second, with how many samples are done.
  std::function<void(std::uint64_t)> on_progress = {};
  /// Set by anybody to stop early.
  const std::atomic<bool>* cancel = nullptr;
};

/// Gives each sample from 0 to `count` - 1 to one of the threads, in any order.
/// @param make_work called once a thread, before it begins: each may have scratch of its own.
/// @return false if it was cancelled. @throws of all that a work threw, what belongs to the first
/// sample; DeviceError if a thread cannot be started.
PRECAST_API bool for_each_sample(std::uint64_t count, const EachSample& how,
                                 const std::function<SampleWork()>& make_work);

}  // namespace precast::data
