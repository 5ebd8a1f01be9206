#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/api/batch.h"
#include "framework/api/run_facts.h"
#include "framework/core/rng.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {

/// Code shared by the methods that mix samples. @{

/// The rules about the order of methods, for methods that use cut_mix().
[[nodiscard]] std::vector<MethodRule> cut_mix_rules();

/// Converts class indices [N] to probabilities [N, classes] float32; probabilities are returned
/// unchanged.
[[nodiscard]] PRECAST_API at::Tensor class_probabilities(const at::Tensor& labels,
                                                         std::int64_t classes);

/// Returns the partner of each row: the row that is `distance` rows before it, where the last row
/// precedes row 0. Distance 1 is as in FFCV and torchvision. In a batch of fewer than 2 *
/// `distance` rows, the distance is half of the rows, rounded down, but at least 1. Keeps the
/// memory format.
[[nodiscard]] PRECAST_API at::Tensor partners(const at::Tensor& rows, std::int64_t distance);

/// MixUp of a batch whose labels are probabilities: inputs and labels become share * own + (1 -
/// share) * partner, where `distance` is that of partners(). All inputs of a sample, such as
/// several views of an image, have the same partner and share. @throws ConfigError for an input
/// that is not of a floating-point type
PRECAST_API void mix_up(Batch& batch, double share, std::int64_t distance = 1);
/// Calls mix_up() with shares drawn from Beta(alpha, alpha). @param same_lambda whether to draw one
/// share per batch instead of one per sample.
void mix_up(Batch& batch, RandomStream& random, double alpha, bool same_lambda,
            std::int64_t distance);

/// CutMix of a batch whose labels are probabilities: the same box of every image is replaced by
/// this box of its partner. In the first input, the box has the fraction 1 - `share` of the area,
/// is centred at column `x` and row `y`, and is clipped at the border. Labels are mixed in
/// proportion to the areas. In inputs of another size, the box is scaled with the image. @throws
/// ConfigError for an input that is not an image
PRECAST_API void cut_mix(Batch& batch, double share, std::int64_t x, std::int64_t y,
                         std::int64_t distance = 1);
/// Calls cut_mix() with a share drawn from Beta(alpha, alpha) and a random centre.
void cut_mix(Batch& batch, RandomStream& random, double alpha, std::int64_t distance);
/// @}

/// A method that mixes the samples of a batch. The labels of every batch become probabilities, and
/// the fraction `probability` of the batches, chosen at random, is mixed. With `probability` 0,
/// batches and labels are unchanged.
class MixingMethod : public MethodWithoutGradientHooks {
 public:
  [[nodiscard]] bool accepts(TargetKind kind) const override;
  /// Adds `probability`.
  void options(Schema& schema) override;
  void on_run(const RunFacts& run) override { run_ = run; }
  void on_batch(Batch& batch, std::int64_t global_step) override;

 protected:
  /// The distance for partners(): the largest number of rows of this rank that can be repeats of
  /// one sample (data.repeats). In a batch of at least twice as many rows, no sample is then mixed
  /// with itself.
  [[nodiscard]] std::int64_t partner_distance() const;

 private:
  /// Returns the random numbers of a step. The first number decides whether the batch is mixed;
  /// mix() draws the following ones.
  [[nodiscard]] virtual RandomStream stream(std::uint64_t seed, std::uint32_t rank,
                                            std::uint64_t global_step) const = 0;
  /// Mixes a batch whose labels are probabilities.
  virtual void mix(Batch& batch, RandomStream& random) const = 0;

  double probability_ = 1;
  RunFacts run_;
};

}  // namespace precast::recipes
