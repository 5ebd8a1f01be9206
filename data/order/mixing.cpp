#include "data/order/mixing.h"

#include <cmath>
#include <set>
#include <unordered_map>

#include "framework/core/error.h"

namespace precast::data {
namespace {

/// The logarithm of the binomial coefficient: n choose k.
double log_binomial(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

}  // namespace

ClassMixing class_mixing(std::span<const std::int64_t> labels, std::uint64_t batch_size) {
  require(batch_size >= 1 && batch_size <= labels.size(), "there is a complete batch");
  std::unordered_map<std::int64_t, std::uint64_t> counts;
  for (const std::int64_t label : labels) ++counts[label];

  ClassMixing mixing;
  const std::uint64_t batches = labels.size() / batch_size;
  for (std::uint64_t b = 0; b < batches; ++b) {
    const auto batch = labels.subspan(b * batch_size, batch_size);
    mixing.classes_per_batch +=
        static_cast<double>(std::set<std::int64_t>(batch.begin(), batch.end()).size());
  }
  mixing.classes_per_batch /= static_cast<double>(batches);

  // A class is missing from a batch if all samples of the batch are drawn from the other classes.
  const auto all = static_cast<double>(labels.size());
  const auto drawn = static_cast<double>(batch_size);
  for (const auto& [label, count] : counts) {
    const double others = all - static_cast<double>(count);
    mixing.expected_classes_per_batch +=
        others < drawn ? 1 : 1 - std::exp(log_binomial(others, drawn) - log_binomial(all, drawn));
  }
  return mixing;
}

}  // namespace precast::data
