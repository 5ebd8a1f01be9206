#pragma once

#include <memory>

#include "data/order/order.h"

namespace precast::data {

/// An order with as many positions as samples, divided into rounds. Each round except possibly the
/// last has one sample of every class, with the classes in random order. Within a class, samples
/// are in random order, and no sample is repeated before all have appeared. In an epoch, the
/// numbers of samples of any two classes therefore differ by at most 1, and samples of rare classes
/// are repeated.
/// @throws the ConfigError of label_field()
[[nodiscard]] std::unique_ptr<SampleOrder> make_class_balanced_order(const OrderInputs& inputs);

}  // namespace precast::data
