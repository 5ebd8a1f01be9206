#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace sparse_regression {

struct GenerateOptions {
  std::int64_t samples = 10000;
  std::int64_t features = 2000;
  /// Number of features with a nonzero coefficient.
  std::int64_t nonzeros = 50;
  /// Standard deviation of the noise in y.
  double noise = 1;
  std::uint64_t seed = 0;
  bool float32 = false;
  int workers = 1;
  /// Whether to also write OUT.x.npy and OUT.y.npy, with the same values.
  bool npy = false;
};

/// The nonzero coefficients from which a dataset was generated. They apply to standardised
/// features: (feature - mean) / deviation.
struct Truth {
  /// Indices of the features, ascending.
  std::vector<std::int64_t> support;
  std::vector<double> coefficients;
};

/// Writes OUT.truth.json and a .beton file with the fields `x`, an array of `features` float16 or
/// float32, and `y`, a float. Each feature is normally distributed with its own mean and deviation;
/// y = 3 + sum of coefficient * (feature - mean) / deviation + noise. A sample depends only on the
/// seed and its index, so memory use does not grow with the number of samples.
/// @throws precast::ConfigError, precast::IoError
void generate(const std::filesystem::path& path, const GenerateOptions& options);

}  // namespace sparse_regression
