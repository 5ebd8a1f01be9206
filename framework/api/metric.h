#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/batch.h"
#include "framework/api/target_kind.h"
#include "framework/core/config/part.h"

namespace precast {

/// A metric of an evaluation, such as top-1 accuracy. It is computed either from sums over all
/// samples, to which every batch and rank contributes, or from one row per sample, in the order of
/// the file. The value does not depend on the number of batches or ranks, provided that the sums
/// are exact (integers below 2^53). Metrics whose sums are not exact use rows. All members are
/// const and thread-safe.
class Metric {
 public:
  virtual ~Metric() = default;
  /// The metric's name in logs and reports: "top_3". Names of other keys of the log and of
  /// summary.json, such as "epoch", are rejected (tools/app/reserved_figures.h).
  [[nodiscard]] virtual std::string name() const = 0;
  /// Whether the metric can be computed for targets of this kind.
  [[nodiscard]] virtual bool accepts(TargetKind /*kind*/) const { return true; }
  /// Whether the metric needs one row per sample instead of sums. Metrics need rows if they depend
  /// on the order of all scores, or on sums of values that are not integers. Each rank stores the
  /// rows of all samples.
  [[nodiscard]] virtual bool needs_rows() const { return false; }
  /// The number of sums that the metric needs. 0 if the number is only known from the size of
  /// count()'s result, which must then be the same for every batch.
  [[nodiscard]] virtual std::int64_t sums() const = 0;
  /// Returns what a batch adds to the sums or, if needs_rows(), its rows. Must not wait for the
  /// device.
  /// @param outputs what the model returned for `batch`; with flip TTA, the sum of two forward
  /// passes.
  /// @return [sums()] float64 on the batch's device; exact for counts below 2^53. If needs_rows():
  /// [N, columns] float64.
  [[nodiscard]] virtual at::Tensor count(const at::Tensor& outputs, const Batch& batch) const = 0;
  /// The metric's value. @param sums the sums over all samples, [sums()] float64 on the CPU,
  /// contiguous; if needs_rows(), instead the rows of all samples, [samples, columns], in the order
  /// of the file.
  /// @param samples the number of samples, above 0.
  [[nodiscard]] virtual double value(const at::Tensor& sums, std::int64_t samples) const = 0;
  /// Whether a higher value is better.
  [[nodiscard]] virtual bool higher_is_better() const { return true; }
};

/// The metric by which evaluations are compared to find the best one.
struct BestMetric {
  /// The name of a metric of the recipe, or top_1, top_5 or val_loss.
  std::string name = "top_1";
  bool higher_is_better = true;
};

using MetricRegistry = PartRegistry<Metric>;
/// The metrics of a recipe, in its order.
using Metrics = std::vector<std::shared_ptr<const Metric>>;

}  // namespace precast
