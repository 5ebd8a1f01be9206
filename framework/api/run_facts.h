#pragma once

#include <cstdint>

namespace precast {

/// What a method may know about its run: the values that determine its random numbers, and the
/// length of the run.
struct RunFacts {
  /// training.seed
  std::uint64_t seed = 0;
  int rank = 0;
  int world = 1;
  std::int64_t num_classes = 0;
  std::int64_t epochs = 0;
  std::int64_t steps_per_epoch = 0;

  /// The share of the run that is done before a step, in [0, 1).
  [[nodiscard]] double share_done(std::int64_t global_step) const {
    const std::int64_t steps = epochs * steps_per_epoch;
    return steps == 0 ? 0 : static_cast<double>(global_step) / static_cast<double>(steps);
  }
};

}  // namespace precast
