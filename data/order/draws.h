#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "framework/core/rng.h"

namespace precast::data {

/// The streams of random numbers of one order and epoch; the order `random` uses stream 0.
enum class OrderStream : std::uint64_t {
  groups = 1,
  within_groups = 2,
  choices = 3,
};

[[nodiscard]] inline RandomStream order_stream(std::uint64_t seed, std::int64_t epoch,
                                               OrderStream draw) {
  return {seed, static_cast<std::uint32_t>(epoch), static_cast<std::uint64_t>(draw),
          RandomUse::order};
}

/// Fisher-Yates.
template <typename T>
void shuffle(std::span<T> values, RandomStream& random) {
  for (std::size_t left = values.size(); left > 1; --left)
    std::swap(values[left - 1], values[random.below(left)]);
}

}  // namespace precast::data
