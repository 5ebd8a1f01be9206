#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// The purpose of a stream of random numbers. It is part of the stream's key, so that no two
/// operations draw the same numbers. The enumerators' values are part of the reproducibility
/// contract: add new ones, never renumber.
enum class RandomUse : std::uint8_t {
  order = 0,
  crop = 1,
  flip = 2,
  write_mode = 3,
  shuffle_on_write = 4,
  split = 5,
  /// Transforms, some methods and other uses whose seeds are derived from names (derived_seed).
  transform = 16,
  mixup = 17,
  cutmix = 18,
  test = 255,
};

/// A stream of random numbers that is a pure function of (seed, epoch, position, use):
/// Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A stream
/// is cheap to create, so each (sample, operation) has its own, and results do not depend on which
/// thread runs an operation. A stream has 2^34 draws of 32 bits. Not thread-safe.
class PRECAST_API RandomStream {
 public:
  /// @param epoch the epoch; for methods that change batches, the rank. @param position the
  /// sample's position in the epoch's global order, or the step; below 2^56.
  RandomStream(std::uint64_t seed, std::uint32_t epoch, std::uint64_t position, RandomUse use);

  /// Uniform over all 32-bit values.
  [[nodiscard]] std::uint32_t next_u32();
  /// Uniform in [0, bound), without bias. `bound` > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] double uniform();
  /// Uniform in [low, high).
  [[nodiscard]] double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Normal with mean 0 and standard deviation 1; uses two draws of uniform() (Box and Muller
  /// 1958).
  [[nodiscard]] double normal();

  /// One Philox4x32-10 block; public for the known-answer test.
  static std::array<std::uint32_t, 4> block(std::array<std::uint32_t, 4> counter,
                                            std::array<std::uint32_t, 2> key);

 private:
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> drawn_{};
  unsigned used_ = 4;
};

/// Derives a seed for `name` from `seed`. Streams with seeds for different names are independent,
/// and the stream of a name does not change when other names are added or removed. Part of the
/// reproducibility contract, like RandomUse.
[[nodiscard]] PRECAST_API std::uint64_t derived_seed(std::uint64_t seed, std::string_view name);

/// A uniformly random permutation of 0 .. n-1 (Fisher-Yates) that depends only on the arguments.
[[nodiscard]] PRECAST_API std::vector<std::uint64_t> random_permutation(
    std::uint64_t n, std::uint64_t seed, std::uint32_t epoch, RandomUse use = RandomUse::order);

}  // namespace precast
