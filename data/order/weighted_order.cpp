#include "data/order/weighted_order.h"

#include <fmt/core.h>

#include <cmath>

#include "data/beton/reader.h"
#include "data/order/draws.h"
#include "data/order/labels.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

class WeightedOrder final : public SampleOrder {
 public:
  /// @param weights one per member, all at least 0, their sum above 0.
  WeightedOrder(SampleSet members, std::vector<double> weights)
      : members_(std::move(members)), threshold_(weights.size()), alias_(weights.size()) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    const double scale = static_cast<double>(weights.size()) / sum;
    std::vector<std::uint64_t> small;
    std::vector<std::uint64_t> large;
    for (std::uint64_t i = 0; i < weights.size(); ++i) {
      weights[i] *= scale;
      (weights[i] < 1 ? small : large).push_back(i);
    }
    // Each sample with a weight below the mean of 1 shares its entry with a sample above the mean,
    // whose weight is reduced by its share.
    while (!small.empty() && !large.empty()) {
      const std::uint64_t low = small.back();
      const std::uint64_t high = large.back();
      small.pop_back();
      threshold_[low] = static_cast<float>(weights[low]);
      alias_[low] = high;
      weights[high] -= 1 - weights[low];
      if (weights[high] < 1) {
        large.pop_back();
        small.push_back(high);
      }
    }
    // The remaining weights differ from 1 only by rounding.
    for (const auto& rest : {small, large}) {
      for (const std::uint64_t i : rest) {
        threshold_[i] = 1;
        alias_[i] = i;
      }
    }
  }

  [[nodiscard]] std::uint64_t size() const override { return members_.size(); }
  [[nodiscard]] std::uint64_t memory_bytes() const override {
    return members_.memory_bytes() + threshold_.size() * (sizeof(float) + sizeof(std::uint64_t));
  }
  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t seed,
                                               std::int64_t epoch) const override {
    RandomStream draws = order_stream(seed, epoch, OrderStream::choices);
    std::vector<std::uint64_t> order(members_.size());
    for (std::uint64_t& id : order) {
      const std::uint64_t position = draws.below(members_.size());
      id = members_[draws.uniform() < static_cast<double>(threshold_[position]) ? position
                                                                                : alias_[position]];
    }
    return order;
  }

 private:
  SampleSet members_;
  std::vector<float> threshold_;
  std::vector<std::uint64_t> alias_;
};

double class_weight(const BetonReader& reader, std::uint64_t sample, std::int64_t label,
                    const std::vector<double>& weights) {
  if (label < 0 || static_cast<std::uint64_t>(label) >= weights.size()) {
    throw ConfigError(
        fmt::format("weights: expected one weight per class, got {} weights, but sample {} of {} "
                    "has label {}",
                    weights.size(), sample, reader.path().string(), label));
  }
  return weights[static_cast<std::size_t>(label)];
}

}  // namespace

void WeightedOptions::options(Schema& schema) {
  schema.add("weights", &weights,
             "for each class, the relative probability with which each of its samples is drawn");
  schema.add("weight_field", &weight_field,
             "instead of weights, a float field with each sample's weight");
}

std::unique_ptr<SampleOrder> make_weighted_order(const OrderInputs& inputs,
                                                 const WeightedOptions& options) {
  const BetonReader& reader = inputs.reader;
  if (options.weights.empty() == options.weight_field.empty()) {
    throw ConfigError(fmt::format(
        "weights: expected either weights (one number per class) or weight_field (the name of a "
        "float field) for the order weighted, got {}",
        options.weights.empty() ? "neither" : "both"));
  }
  std::vector<double> weights(inputs.members.size());
  const bool by_class = !options.weights.empty();
  const std::size_t field = by_class ? label_field(reader, inputs.options.label_field)
                                     : weight_field(reader, options.weight_field);
  const std::string key =
      by_class ? "weights" : fmt::format("weight_field '{}'", options.weight_field);
  double sum = 0;
  for (std::uint64_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t sample = inputs.members[i];
    weights[i] = by_class
                     ? class_weight(reader, sample, reader.integer(sample, field), options.weights)
                     : reader.floating(sample, field);
    if (!(weights[i] >= 0) || !std::isfinite(weights[i])) {
      throw ConfigError(fmt::format("{}: expected finite numbers >= 0, got {} (sample {} of {})",
                                    key, weights[i], sample, reader.path().string()));
    }
    sum += weights[i];
  }
  if (!(sum > 0) || !std::isfinite(sum))
    throw ConfigError(fmt::format("{}: expected a finite sum above 0, got {} ({})", key, sum,
                                  reader.path().string()));
  return std::make_unique<WeightedOrder>(inputs.members, std::move(weights));
}

}  // namespace precast::data
