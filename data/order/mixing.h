#pragma once

#include <cstdint>
#include <span>

#include "framework/core/export.h"

namespace precast::data {

/// How well an order mixes the classes.
struct ClassMixing {
  /// Mean number of different classes in a complete batch.
  double classes_per_batch = 0;
  /// The expected value of this mean for a uniformly random order of these labels.
  double expected_classes_per_batch = 0;
  /// 1: mixed as well as a random order; near 0: batches contain few classes.
  [[nodiscard]] double ratio() const { return classes_per_batch / expected_classes_per_batch; }
};

/// @param labels the label at each position of one epoch. @param batch_size from 1 to
/// labels.size().
[[nodiscard]] PRECAST_API ClassMixing class_mixing(std::span<const std::int64_t> labels,
                                                   std::uint64_t batch_size);

}  // namespace precast::data
