#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// Assigns each item to one part at random. The result depends only on the arguments.
/// @param classes the class of each item; if all are equal, the parts are simply random. Otherwise,
/// each class is divided in the proportion of `sizes`, to within about one item (systematic
/// sampling over the classes, one after the other; Madow and Madow 1944).
/// @param sizes the sizes of the parts; they add up to the number of items.
/// @return for each part, its indices into `classes` in ascending order.
[[nodiscard]] PRECAST_API std::vector<std::vector<std::uint64_t>> split_stratified(
    std::span<const std::int64_t> classes, std::span<const std::uint64_t> sizes,
    std::uint64_t seed);

/// Divides `total` into integers in the proportion of `shares`, which add up to 1.
[[nodiscard]] PRECAST_API std::vector<std::uint64_t> part_sizes(std::span<const double> shares,
                                                                std::uint64_t total);

}  // namespace precast::data
