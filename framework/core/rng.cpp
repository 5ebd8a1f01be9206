#include "framework/core/rng.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "framework/core/error.h"

namespace precast {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53U;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57U;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
constexpr int kRounds = 10;

std::pair<std::uint32_t, std::uint32_t> multiply(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::uint32_t epoch, std::uint64_t position,
                           RandomUse use)
    : counter_{0,
               (static_cast<std::uint32_t>(use) << 24) |
                   (static_cast<std::uint32_t>(position >> 32) & 0xFFFFFFU),
               static_cast<std::uint32_t>(position), epoch},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

std::array<std::uint32_t, 4> RandomStream::block(std::array<std::uint32_t, 4> counter,
                                                 std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const auto [high0, low0] = multiply(kMultiplier0, counter[0]);
    const auto [high1, low1] = multiply(kMultiplier1, counter[2]);
    counter = {high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::uint32_t RandomStream::next_u32() {
  if (used_ == drawn_.size()) {
    drawn_ = block(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return drawn_[used_++];
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  require(bound > 0, "below() draws from a non-empty range");
  // Rejects the few values that would make some results more likely than others.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t drawn = 0;
  do {
    // Two statements, because C++ does not define which of two calls in one expression runs first.
    drawn = std::uint64_t{next_u32()} << 32;
    drawn |= next_u32();
  } while (drawn >= limit);
  return drawn % bound;
}

double RandomStream::uniform() {
  const std::uint64_t high = next_u32() >> 5;
  const std::uint64_t low = next_u32() >> 6;
  return static_cast<double>((high << 26) | low) * 0x1.0p-53;
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::uint64_t derived_seed(std::uint64_t seed, std::string_view name) {
  // FNV-1a hashes the name to 64 bits; one Philox block, keyed by the seed, turns them into a
  // random number.
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  const auto mixed = RandomStream::block(
      {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32), 0, 0},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return (std::uint64_t{mixed[1]} << 32) | mixed[0];
}

std::vector<std::uint64_t> random_permutation(std::uint64_t n, std::uint64_t seed,
                                              std::uint32_t epoch, RandomUse use) {
  std::vector<std::uint64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(seed, epoch, 0, use);
  for (std::uint64_t left = n; left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

}  // namespace precast
