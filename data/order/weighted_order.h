#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/order/order.h"

namespace precast::data {

struct WeightedOptions {
  /// The weight of each class, or empty.
  std::vector<double> weights;
  /// Name of a float field with each sample's weight, or "".
  std::string weight_field;

  void options(Schema& schema);
};

/// An order in which samples are drawn with replacement, with as many draws as there are samples.
/// The probability of each sample is proportional to its weight: options.weights[label], or the
/// sample's value in options.weight_field. Uses the alias method (Vose, 1991), which needs 12 bytes
/// per sample. @throws ConfigError if weights are missing, negative, not finite or all 0.
[[nodiscard]] std::unique_ptr<SampleOrder> make_weighted_order(const OrderInputs& inputs,
                                                               const WeightedOptions& options);

}  // namespace precast::data
