#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/api/communicator.h"
#include "framework/api/metric.h"
#include "framework/core/export.h"

namespace precast::engine {

/// Whether `counted` has the type and the number of dimensions and elements that the metric's
/// count() must return for a batch of `samples` samples.
[[nodiscard]] PRECAST_API bool is_count_of(const Metric& metric, const at::Tensor& counted,
                                           std::int64_t samples);

/// Collects one rank's sums and rows for the metrics of an evaluation. Not thread-safe.
class PRECAST_API MetricCounts {
 public:
  /// @param device the batches' device.
  MetricCounts(const Metrics& metrics, at::Device device);
  void add(const at::Tensor& outputs, const Batch& batch);
  /// Name and value of each metric over the samples of all ranks. Collective. Rank r must have
  /// added the rows of the samples r, r + world, r + 2 world ... (EpochRequest).
  /// @param samples total number of samples over all ranks, above 0.
  [[nodiscard]] std::vector<std::pair<std::string, double>> values(Communicator& ranks,
                                                                   std::int64_t samples);

 private:
  /// The number of sums, or of columns, of each metric. The ranks exchange these numbers, because a
  /// rank without batches cannot compute them.
  [[nodiscard]] std::vector<std::int64_t> widths(Communicator& ranks) const;

  const Metrics& metrics_;
  at::Device device_;
  /// For each metric, the sums (undefined before the first batch) or the rows of each batch.
  std::vector<at::Tensor> sums_;
  std::vector<std::vector<at::Tensor>> rows_;
};

}  // namespace precast::engine
