#pragma once

#include <memory>

#include "data/order/order.h"

namespace precast::data {

/// A uniformly random permutation, which differs from epoch to epoch.
[[nodiscard]] std::unique_ptr<SampleOrder> make_random_order(const OrderInputs& inputs);

}  // namespace precast::data
