#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// Per-channel mean and standard deviation of pixels in 0..255; the defaults are ImageNet's. Each
/// has three numbers, or one number for images with one channel.
struct NormalizeOptions {
  std::vector<double> mean = {0.485 * 255, 0.456 * 255, 0.406 * 255};
  std::vector<double> std = {0.229 * 255, 0.224 * 255, 0.225 * 255};

  /// Returns ImageNet's values for luma: weighted averages of the three channels' means and
  /// standard deviations, with the weights of luma.
  [[nodiscard]] PRECAST_API static NormalizeOptions of_luma();
  /// The values for channel c, 0 to 2. @{
  [[nodiscard]] double mean_of(std::size_t c) const { return mean.at(mean.size() == 1 ? 0 : c); }
  [[nodiscard]] double std_of(std::size_t c) const { return std.at(std.size() == 1 ? 0 : c); }
  /// @}
};

/// Computes (pixel - mean) / std in float32, like FFCV's NormalizeImage: bitwise identical to the
/// same expression on a torch tensor. For half and bfloat16, the float32 result is rounded to
/// nearest even. There are only 3 x 256 results, so the constructor computes all of them.
/// write_pixels() (data/image/pixel_format.h) uses a cheaper formula only if all its results are
/// exactly the same. Thread-safe.
class PRECAST_API Normalize {
 public:
  /// How SIMD code computes the results.
  enum class Formula {
    /// One multiply-add, value * slope + offset: usually enough for half and bfloat16.
    line,
    /// (value - mean) * reciprocal, then one step of Newton's method on the remainder (Markstein,
    /// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
    quotient,
    /// A lookup in the table of results.
    table,
  };

  /// Length of each array in Constants: three of the widest vectors (16 lanes each), because the
  /// constants of three alternating channels repeat after that many lanes.
  static constexpr std::size_t kLanes = 3 * 16;
  using Lanes = std::array<float, kLanes>;

  /// Constants for successive values: either for one channel, or alternately for the three
  /// channels.
  struct Constants {
    alignas(64) Lanes mean, std, reciprocal, slope, offset;
  };

  /// All results in one element type: [channel][pixel value].
  template <typename T>
  using Table = std::array<std::array<T, 256>, 3>;

  explicit Normalize(const NormalizeOptions& options);

  /// The normalisation that leaves pixels unchanged.
  [[nodiscard]] static const Normalize& identity();

  [[nodiscard]] const Table<float>& f32() const { return f32_; }
  /// The results as bit patterns. @{
  [[nodiscard]] const Table<std::uint16_t>& f16() const { return f16_; }
  [[nodiscard]] const Table<std::uint16_t>& bf16() const { return bf16_; }
  /// @}

  [[nodiscard]] Formula f32_formula() const { return f32_formula_; }
  [[nodiscard]] Formula f16_formula() const { return f16_formula_; }
  [[nodiscard]] Formula bf16_formula() const { return bf16_formula_; }

  /// Constants for pixels with three interleaved channels.
  [[nodiscard]] const Constants& interleaved() const { return constants_[3]; }
  [[nodiscard]] const Constants& channel(std::size_t c) const { return constants_[c]; }

 private:
  void fill_constants(const NormalizeOptions& options);
  template <typename T, typename Round>
  [[nodiscard]] Formula cheapest(const Table<T>& table, Round round) const;

  Table<float> f32_{};
  Table<std::uint16_t> f16_{}, bf16_{};
  Formula f32_formula_{}, f16_formula_{}, bf16_formula_{};
  std::array<Constants, 4> constants_{};
};

}  // namespace precast::data
