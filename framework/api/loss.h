#pragma once

#include <ATen/core/Tensor.h>

#include "framework/api/batch.h"
#include "framework/api/target_kind.h"
#include "framework/core/config/part.h"
#include "framework/core/export.h"

namespace precast {

/// The quantity that training minimises: a measure of how far a model's outputs are from the
/// batch's targets. All members are const and thread-safe.
class PRECAST_API Loss {
 public:
  virtual ~Loss() = default;
  /// The kind of targets that the loss compares outputs with.
  [[nodiscard]] virtual TargetKind target_kind() const { return TargetKind::class_index; }
  /// @param outputs what the model returned for `batch`.
  /// @return scalar float32: the mean over the batch.
  [[nodiscard]] virtual at::Tensor operator()(const at::Tensor& outputs,
                                              const Batch& batch) const = 0;
  /// The loss of each sample, [N] float32. Its mean is the result of operator(), unless the samples
  /// have different weights (masks with ignored pixels). By default, operator() is called once for
  /// each sample.
  [[nodiscard]] virtual at::Tensor per_sample(const at::Tensor& outputs, const Batch& batch) const;
};

/// A loss that compares the outputs with the first target.
class PRECAST_API TargetLoss : public Loss {
 public:
  /// @param target the first target; for classes [N] int64 (indices) or [N, classes] float
  /// (probabilities).
  /// @return scalar float32: the mean over the batch.
  [[nodiscard]] virtual at::Tensor mean(const at::Tensor& outputs,
                                        const at::Tensor& target) const = 0;
  /// The loss of each sample, like Loss::per_sample().
  [[nodiscard]] virtual at::Tensor each(const at::Tensor& outputs, const at::Tensor& target) const;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& outputs, const Batch& batch) const final {
    return mean(outputs, batch.target());
  }
  [[nodiscard]] at::Tensor per_sample(const at::Tensor& outputs, const Batch& batch) const final {
    return each(outputs, batch.target());
  }
};

using LossRegistry = PartRegistry<Loss>;

}  // namespace precast
