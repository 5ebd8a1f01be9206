#pragma once

#include <memory>

#include "data/order/order.h"

namespace precast::data {

/// As many draws as samples, with replacement, each sample with a probability proportional to its
/// weight: options.class_weights[label], or its value in options.weight_field. Alias method (Vose,
/// 1991): 12 bytes a sample are kept. @throws ConfigError if weights are missing, negative, not
/// finite or all 0.
[[nodiscard]] std::unique_ptr<SampleOrder> make_weighted_order(const OrderInputs& inputs);

}  // namespace precast::data
