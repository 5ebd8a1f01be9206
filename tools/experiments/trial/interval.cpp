#include "tools/experiments/trial/interval.h"

#include <array>
#include <cmath>
#include <numeric>

namespace precast::tools {
namespace {

/// The 97.5 % quantile of Student's t for 1 to 10 degrees of freedom.
constexpr std::array kQuantiles = {12.7062047362, 4.3026527297, 3.1824463053, 2.7764451052,
                                   2.5705818356,  2.4469118511, 2.3646242516, 2.3060041352,
                                   2.2621571628,  2.2281388520};
constexpr double kNormalQuantile = 1.9599639845;

double quantile(int degrees) {
  if (degrees <= static_cast<int>(kQuantiles.size()))
    return kQuantiles.at(static_cast<std::size_t>(degrees - 1));
  // Cornish-Fisher expansion, Abramowitz and Stegun 26.7.5: accurate to 1e-4 from here on.
  const double z = kNormalQuantile, n = degrees;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

}  // namespace

MeanInterval mean_interval(std::span<const double> values) {
  MeanInterval result{.count = static_cast<int>(values.size())};
  if (values.empty()) return result;
  const auto count = static_cast<double>(values.size());
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.half_width = quantile(result.count - 1) * std::sqrt(squares / (count - 1) / count);
  return result;
}

}  // namespace precast::tools
