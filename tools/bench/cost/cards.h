#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// The speed that kernels reach on a card. The rates are measured (for TF32, half of the measured
/// fp16 rate), not taken from data sheets; cards.cpp names their sources.
struct Card {
  std::string_view name;
  std::string_view title;
  /// Matrix products with fp16 inputs and fp32 sums, FLOP/s.
  double half_flops = 0;
  /// Convolutions with fp32 tensors, FLOP/s: in TF32 if the card supports it. Also used for other
  /// products of fp32 tensors.
  double fp32_flops = 0;
  /// A kernel that reads one array and writes another: bytes read and written per second.
  double copy_bytes = 0;
  int multiprocessors = 0;
  bool has_bf16 = true;
  std::string_view source;
};

/// The known cards, sorted by name: a100_40gb, a100_80gb, h100, h200, v100.
[[nodiscard]] const std::array<Card, 5>& cards();

/// Parses a list of cards such as `a100_80gb,h200`, or `all`. @throws ConfigError naming `option`
[[nodiscard]] std::vector<const Card*> parse_cards(std::string_view option,
                                                   const std::string& list);

/// The fraction of a card's measured peaks that the kernels of eager PyTorch reach, averaged over a
/// step. Calibrated with one published figure of the V100, the oldest of these cards: see
/// cards.cpp.
extern const double kAchievedFraction;
/// The speed of each of eight GPUs that train together on one host, divided by the speed of one GPU
/// alone. It is below 1 because of all-reduce, data loading and waiting for other ranks.
extern const double kNodeEfficiency;
/// The shortest duration of a kernel, in seconds.
extern const double kMinKernelSeconds;

/// A published figure that the model is compared with.
struct PublishedSpeed {
  std::string_view source;
  std::string_view card;
  std::string_view model;
  bool blurpool = false;
  int image_size_px = 0;
  int batch_size = 0;
  int ranks = 1;
  /// Per GPU.
  double images_per_second = 0;
  /// Whether a constant of the model was fitted to this figure. Otherwise the figure checks the
  /// model.
  bool calibrates = false;
};
[[nodiscard]] const std::array<PublishedSpeed, 5>& published_speeds();
/// Whether a published figure checks the model for this card. Figures to which the model was fitted
/// do not count.
[[nodiscard]] bool is_checked(const Card& card);

}  // namespace precast::tools
