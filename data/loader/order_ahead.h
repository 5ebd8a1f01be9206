#pragma once

#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "data/order/order.h"
#include "framework/core/export.h"

namespace precast::data {

/// Prepares the next epoch's order while the current one runs: shuffling a million samples takes
/// 0.1 to 0.3 s, during which a GPU would wait. Small orders are computed when they are needed. Not
/// thread-safe.
class PRECAST_API OrderAhead {
 public:
  /// Borrows `order`. @param large orders of at least this many positions are computed ahead.
  OrderAhead(const SampleOrder& order, std::uint64_t seed, std::uint64_t large = 100'000)
      : order_(order), seed_(seed), large_(large) {}
  OrderAhead(const OrderAhead&) = delete;
  OrderAhead& operator=(const OrderAhead&) = delete;

  /// Returns the ids of an epoch. Computes them now unless prepare() has already done so.
  /// @throws the errors of the order.
  [[nodiscard]] std::vector<std::uint64_t> take(std::int64_t epoch);
  /// Starts a thread that computes the ids of an epoch, if the order is large.
  void prepare(std::int64_t epoch);

 private:
  [[nodiscard]] std::vector<std::uint64_t> make(std::int64_t epoch) const;

  const SampleOrder& order_;
  const std::uint64_t seed_;
  const std::uint64_t large_;
  std::int64_t epoch_ = -1;
  std::vector<std::uint64_t> ids_;
  std::exception_ptr error_;
  /// The last member, so that the thread is joined before the other members are destroyed.
  std::jthread maker_;
};

}  // namespace precast::data
