#pragma once

#include <cstdint>

namespace precast {

/// What the methods of a run know about it.
struct RunFacts {
  /// training.seed
  std::uint64_t seed = 0;
  int rank = 0;
  int world = 1;
  std::int64_t num_classes = 0;
  std::int64_t epochs = 0;
  std::int64_t steps_per_epoch = 0;
  /// data.repeats: up to this many consecutive samples of the global batch are the same sample.
  /// Sample p of the global batch is on rank p % world.
  std::int64_t repeats = 1;

  /// The fraction of the run that is complete when a step begins, in [0, 1).
  [[nodiscard]] double share_done(std::int64_t global_step) const {
    const std::int64_t steps = epochs * steps_per_epoch;
    return steps == 0 ? 0 : static_cast<double>(global_step) / static_cast<double>(steps);
  }
};

}  // namespace precast
