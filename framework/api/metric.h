#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/batch.h"
#include "framework/core/config/part.h"

namespace precast {

/// A figure of an evaluation. It is computed from sums over all samples, to which every batch and
/// rank adds, so it does not depend on the number of batches or ranks. Const and thread-safe.
class Metric {
 public:
  virtual ~Metric() = default;
  /// What logs and reports call it: "top_3".
  [[nodiscard]] virtual std::string name() const = 0;
  /// The number of sums that it needs.
  [[nodiscard]] virtual std::int64_t sums() const = 0;
  /// What a batch adds to the sums. Must not wait for the device.
  /// @param outputs what the model returned for `batch`; with flip TTA the sum of two passes.
  /// @return [sums()] float64 on the batch's device; exact for counts below 2^53.
  [[nodiscard]] virtual at::Tensor count(const at::Tensor& outputs, const Batch& batch) const = 0;
  /// @param sums over all samples, [sums()] float64 on the CPU. @param samples their number, above
  /// 0.
  [[nodiscard]] virtual double value(const at::Tensor& sums, std::int64_t samples) const = 0;
  /// The direction of an improvement.
  [[nodiscard]] virtual bool higher_is_better() const { return true; }
};

using MetricRegistry = PartRegistry<Metric>;
/// The metrics of a recipe, in its order.
using Metrics = std::vector<std::shared_ptr<const Metric>>;

}  // namespace precast
