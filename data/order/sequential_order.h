#pragma once

#include <memory>

#include "data/order/order.h"

namespace precast::data {

/// The order of the file, in every epoch.
[[nodiscard]] std::unique_ptr<SampleOrder> make_sequential_order(const OrderInputs& inputs);

}  // namespace precast::data
