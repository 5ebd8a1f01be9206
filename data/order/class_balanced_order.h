#pragma once

#include <memory>

#include "data/order/order.h"

namespace precast::data {

/// An order with as many positions as samples, in rounds: each round has one sample of every class,
/// the classes in random order. Within a class, samples come in random order, and none repeats
/// before all have appeared. So class counts differ by at most 1 in an epoch, and samples of rare
/// classes repeat. @throws ConfigError if there is no integer field.
[[nodiscard]] std::unique_ptr<SampleOrder> make_class_balanced_order(const OrderInputs& inputs);

}  // namespace precast::data
