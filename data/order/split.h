#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// Deals things out at random: each to one part. A function of its arguments alone.
/// @param classes of each thing; where all are equal, parts are plain random ones. Else each class
/// is dealt out in the parts' proportion, to within a thing or so (systematic sampling over the
/// classes one after the other; Madow and Madow 1944).
/// @param sizes of the parts; they add up to the number of things.
/// @return [part]: places in `classes`, ascending.
[[nodiscard]] PRECAST_API std::vector<std::vector<std::uint64_t>> split_stratified(
    std::span<const std::int64_t> classes, std::span<const std::uint64_t> sizes,
    std::uint64_t seed);

/// Whole numbers in the proportion of `shares`, which add up to 1; their sum is `total`.
[[nodiscard]] PRECAST_API std::vector<std::uint64_t> part_sizes(std::span<const double> shares,
                                                                std::uint64_t total);

}  // namespace precast::data
