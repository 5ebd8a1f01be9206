#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

enum class OrderKind {
  /// As in the file.
  sequential,
  /// A uniformly random permutation, another one each epoch.
  random,
};

/// Which sample stands at each position of an epoch, over all ranks: a function of its arguments
/// alone.
[[nodiscard]] PRECAST_API std::vector<std::uint64_t> make_order(OrderKind kind,
                                                                std::uint64_t samples,
                                                                std::uint64_t seed,
                                                                std::int64_t epoch);

}  // namespace precast::data
