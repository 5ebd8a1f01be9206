#include "data/order/order.h"

#include <numeric>

#include "framework/core/rng.h"

namespace precast::data {

std::vector<std::uint64_t> make_order(OrderKind kind, std::uint64_t samples, std::uint64_t seed,
                                      std::int64_t epoch) {
  if (kind == OrderKind::random) {
    return random_permutation(samples, seed, static_cast<std::uint32_t>(epoch));
  }
  std::vector<std::uint64_t> order(samples);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace precast::data
