#include "data/image/normalize.h"

#include <bit>
#include <cmath>

namespace precast::data {
namespace {

/// Converts to IEEE half, rounding to nearest even.
std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const auto with_sign = [sign](std::uint32_t half) {
    return static_cast<std::uint16_t>(sign | half);
  };
  constexpr std::uint32_t kInfinity = 0x7F800000U;
  constexpr std::uint32_t kOverflow = 0x477FF000U;        // 65520 and above round to infinity
  constexpr std::uint32_t kSmallestNormal = 0x38800000U;  // 2^-14
  if (magnitude > kInfinity) return with_sign(0x7E00U);
  if (magnitude >= kOverflow) return with_sign(0x7C00U);
  if (magnitude < kSmallestNormal) {  // subnormal halves are multiples of 2^-24
    return with_sign(static_cast<std::uint32_t>(std::nearbyint(std::abs(value) * 0x1p24F)));
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + (magnitude >> 13 & 1U);
  return with_sign((rounded - 0x38000000U) >> 13);
}

/// Converts to bfloat16 (the upper half of a float), rounding to nearest even. NaN stays NaN if the
/// lower half of its bits is 0, as in every NaN that arithmetic on numbers produces.
std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}
bool same(std::uint16_t a, std::uint16_t b) {
  return a == b;
}

}  // namespace

NormalizeOptions NormalizeOptions::of_luma() {
  const NormalizeOptions rgb;
  const auto weighted = [](const std::vector<double>& of) {
    return 0.299 * of[0] + 0.587 * of[1] + 0.114 * of[2];
  };
  return {.mean = {weighted(rgb.mean)}, .std = {weighted(rgb.std)}};
}

void Normalize::fill_constants(const NormalizeOptions& options) {
  for (std::size_t set = 0; set < constants_.size(); ++set) {
    Constants& of = constants_[set];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::size_t c = set == 3 ? lane % 3 : set;
      of.mean[lane] = static_cast<float>(options.mean_of(c));
      of.std[lane] = static_cast<float>(options.std_of(c));
      of.reciprocal[lane] = 1.0F / of.std[lane];
      of.slope[lane] = static_cast<float>(1.0 / double{of.std[lane]});
      of.offset[lane] = static_cast<float>(-double{of.mean[lane]} / double{of.std[lane]});
    }
  }
}

template <typename T, typename Round>
Normalize::Formula Normalize::cheapest(const Table<T>& table, Round round) const {
  bool line = true;
  bool quotient = true;
  for (std::size_t c = 0; c < 3; ++c) {
    const Constants& of = constants_[c];
    for (std::size_t value = 0; value < 256; ++value) {
      const auto pixel = static_cast<float>(value);
      const float on_line = std::fma(pixel, of.slope[0], of.offset[0]);
      const float difference = pixel - of.mean[0];
      const float guess = difference * of.reciprocal[0];
      const float refined =
          std::fma(std::fma(-guess, of.std[0], difference), of.reciprocal[0], guess);
      line = line && same(round(on_line), table[c][value]);
      quotient = quotient && same(round(refined), table[c][value]);
    }
  }
  return line ? Formula::line : quotient ? Formula::quotient : Formula::table;
}

Normalize::Normalize(const NormalizeOptions& options) {
  fill_constants(options);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t value = 0; value < 256; ++value) {
      const float result =
          (static_cast<float>(value) - constants_[c].mean[0]) / constants_[c].std[0];
      f32_[c][value] = result;
      f16_[c][value] = to_half(result);
      bf16_[c][value] = to_bfloat16(result);
    }
  }
  f32_formula_ = cheapest(f32_, [](float value) { return value; });
  f16_formula_ = cheapest(f16_, to_half);
  bf16_formula_ = cheapest(bf16_, to_bfloat16);
}

const Normalize& Normalize::identity() {
  static const Normalize kIdentity({.mean = {0, 0, 0}, .std = {1, 1, 1}});
  return kIdentity;
}

}  // namespace precast::data
