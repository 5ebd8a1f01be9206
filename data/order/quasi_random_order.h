#pragma once

#include <memory>

#include "data/order/order.h"

namespace precast::data {

/// A nearly random order with few disk seeks: pages come in random order, and options.window_pages
/// of them are open at once; each position takes the next sample (in random order within its page)
/// of an open page drawn at random, and an exhausted page is replaced by the next one. Any range of
/// positions therefore uses few pages, and each page is read once per epoch (FFCV's QUASI_RANDOM,
/// which opens 2 x batch size pages). If all pages are open, the order is close to `random`. A
/// sample's page is that of its first field with bytes; samples without bytes share an extra page.
[[nodiscard]] std::unique_ptr<SampleOrder> make_quasi_random_order(const OrderInputs& inputs);

}  // namespace precast::data
