#include "framework/engine/metric_counts.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"

namespace precast::engine {

bool is_count_of(const Metric& metric, const at::Tensor& counted, std::int64_t samples) {
  if (!counted.defined() || counted.scalar_type() != at::kDouble) return false;
  if (metric.needs_rows())
    return counted.dim() == 2 && counted.size(0) == samples && counted.size(1) > 0;
  const std::int64_t sums = metric.sums();
  return counted.dim() == 1 && counted.size(0) > 0 && (sums == 0 || counted.size(0) == sums);
}

MetricCounts::MetricCounts(const Metrics& metrics, at::Device device)
    : metrics_(metrics), device_(device), sums_(metrics.size()), rows_(metrics.size()) {}

void MetricCounts::add(const at::Tensor& outputs, const Batch& batch) {
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    at::Tensor counted = metrics_[i]->count(outputs, batch);
    require(is_count_of(*metrics_[i], counted, batch.size()),
            "a metric returns float64: one row per sample, or as many sums as it declares");
    if (metrics_[i]->needs_rows()) {
      rows_[i].push_back(std::move(counted));
    } else if (sums_[i].defined()) {
      require(sums_[i].sizes() == counted.sizes(),
              "a metric returns the same number of sums for every batch");
      sums_[i].add_(counted);
    } else {
      sums_[i] = counted.clone();
    }
  }
}

std::vector<std::int64_t> MetricCounts::widths(Communicator& ranks) const {
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    std::int64_t width = metrics_[i]->needs_rows() ? 0 : metrics_[i]->sums();
    if (sums_[i].defined()) width = sums_[i].size(0);
    if (!rows_[i].empty()) width = rows_[i].front().size(1);
    widths.push_back(width);
  }
  const auto unknown = [](std::int64_t width) { return width == 0; };
  const bool fixed = std::ranges::all_of(
      metrics_, [](const auto& metric) { return !metric->needs_rows() && metric->sums() > 0; });
  if (fixed || ranks.world() == 1) return widths;
  // A rank without samples knows the widths only from the other ranks.
  for (const std::string& text : ranks.all_gather(nlohmann::json(widths).dump())) {
    const auto theirs = nlohmann::json::parse(text).get<std::vector<std::int64_t>>();
    require(theirs.size() == widths.size(), "all ranks have the same metrics");
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], theirs[i]);
  }
  require(std::ranges::none_of(widths, unknown), "at least one rank has samples");
  return widths;
}

std::vector<std::pair<std::string, double>> MetricCounts::values(Communicator& ranks,
                                                                 std::int64_t samples) {
  const std::vector<std::int64_t> wide = widths(ranks);
  const at::TensorOptions reals = at::device(device_).dtype(at::kDouble);
  std::vector<at::Tensor> all;
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    if (!metrics_[i]->needs_rows()) {
      all.push_back(sums_[i].defined() ? sums_[i] : at::zeros({wide[i]}, reals));
      continue;
    }
    // Each element is non-zero on only one rank, so the sum is exact.
    at::Tensor rows = at::zeros({samples, wide[i]}, reals);
    if (!rows_[i].empty())
      rows.slice(0, ranks.rank(), samples, ranks.world()).copy_(at::cat(rows_[i]));
    all.push_back(rows);
  }
  if (!all.empty()) ranks.all_reduce_sum(all);
  std::vector<std::pair<std::string, double>> values;
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    values.emplace_back(metrics_[i]->name(),
                        metrics_[i]->value(all[i].cpu().contiguous(), samples));
  return values;
}

}  // namespace precast::engine
