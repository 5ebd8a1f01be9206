#include "data/loader/order_ahead.h"

#include <system_error>
#include <utility>

#include "framework/core/error.h"

namespace precast::data {

std::vector<std::uint64_t> OrderAhead::make(std::int64_t epoch) const {
  std::vector<std::uint64_t> ids = order_.ids(seed_, epoch);
  require(ids.size() == order_.size(), "an order has a sample for every position");
  return ids;
}

std::vector<std::uint64_t> OrderAhead::take(std::int64_t epoch) {
  if (maker_.joinable()) maker_.join();
  const bool prepared = std::exchange(epoch_, -1) == epoch;
  if (!prepared) ids_ = {};
  if (!prepared || error_) return make(epoch);
  return std::exchange(ids_, {});
}

void OrderAhead::prepare(std::int64_t epoch) {
  if (order_.size() < large_) return;
  if (maker_.joinable()) maker_.join();
  epoch_ = epoch;
  error_ = nullptr;
  try {
    maker_ = std::jthread([this, epoch] {
      try {
        ids_ = make(epoch);
      } catch (...) {
        error_ = std::current_exception();
      }
    });
  } catch (const std::system_error&) {
    // If no thread can be started, the order is computed when it is requested.
    epoch_ = -1;
  }
}

}  // namespace precast::data
