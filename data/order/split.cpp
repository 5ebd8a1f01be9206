#include "data/order/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/core/error.h"
#include "framework/core/rng.h"

namespace precast::data {

std::vector<std::vector<std::uint64_t>> split_stratified(std::span<const std::int64_t> classes,
                                                         std::span<const std::uint64_t> sizes,
                                                         std::uint64_t seed) {
  const std::uint64_t total = classes.size();
  require(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) == total,
          "the sizes of the parts add up to the number of items");
  std::vector<std::uint64_t> ordered_items = random_permutation(total, seed, 0, RandomUse::split);
  std::ranges::stable_sort(ordered_items, {}, [&](std::uint64_t i) { return classes[i]; });

  // The next item is assigned to the part that is furthest behind its target size.
  std::vector<std::vector<std::uint64_t>> parts(sizes.size());
  for (std::uint64_t position = 0; position < total; ++position) {
    std::size_t best_part = 0;
    double max_deficit = -INFINITY;
    for (std::size_t part = 0; part < sizes.size(); ++part) {
      const auto has = static_cast<double>(parts[part].size());
      const auto all = static_cast<double>(sizes[part]);
      const double deficit =
          all * static_cast<double>(position + 1) / static_cast<double>(total) - has;
      if (has >= all || deficit <= max_deficit) continue;
      best_part = part;
      max_deficit = deficit;
    }
    parts[best_part].push_back(ordered_items[position]);
  }
  for (auto& part : parts) std::ranges::sort(part);
  return parts;
}

std::vector<std::uint64_t> part_sizes(std::span<const double> shares, std::uint64_t total) {
  std::vector<std::uint64_t> sizes;
  double sum = 0;
  std::uint64_t assigned = 0;
  for (const double share : shares) {
    sum += share;
    const auto end =
        std::min(total, static_cast<std::uint64_t>(std::llround(sum * static_cast<double>(total))));
    sizes.push_back(end - assigned);
    assigned = end;
  }
  sizes.back() += total - assigned;
  return sizes;
}

}  // namespace precast::data
