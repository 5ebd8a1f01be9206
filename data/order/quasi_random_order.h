#pragma once

#include <memory>

#include "data/order/order.h"

namespace precast::data {

/// A nearly random order with few disk seeks (FFCV's QUASI_RANDOM, which opens 2 x batch size
/// pages). Pages are opened in random order, and at most options.window_pages of them are open at
/// the same time. For each position, an open page is drawn at random, and its next sample is taken;
/// samples are in random order within their page. An exhausted page is replaced by the next page. A
/// short range of positions therefore uses few pages, and each page is read once per epoch. If all
/// pages are open, the order is close to `random`. pages_of() determines the page of each sample;
/// samples without a page share an extra one.
[[nodiscard]] std::unique_ptr<SampleOrder> make_quasi_random_order(const OrderInputs& inputs);

}  // namespace precast::data
