#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// Per-channel mean and standard deviation of pixels in 0..255; the defaults are ImageNet's.
struct NormalizeOptions {
  std::vector<double> mean = {0.485 * 255, 0.456 * 255, 0.406 * 255};
  std::vector<double> std = {0.229 * 255, 0.224 * 255, 0.225 * 255};
};

/// (pixel - mean) / std through a table of the 256 possible values, as FFCV's NormalizeImage. In
/// float32 throughout: bit for bit the same expression on a torch tensor. Thread-safe.
class PRECAST_API Normalize {
 public:
  explicit Normalize(const NormalizeOptions& options);
  /// @param in  [pixels, 3] uint8. @param out [pixels, 3] float32; may not overlap `in`.
  void apply(const std::uint8_t* in, std::size_t pixels, float* out) const;

 private:
  std::array<std::array<float, 256>, 3> table_;
};

}  // namespace precast::data
