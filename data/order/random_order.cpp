#include "data/order/random_order.h"

#include "framework/core/rng.h"

namespace precast::data {
namespace {

class RandomOrder final : public SampleOrder {
 public:
  explicit RandomOrder(SampleSet members) : members_(std::move(members)) {}

  [[nodiscard]] std::uint64_t size() const override { return members_.size(); }
  [[nodiscard]] std::uint64_t memory_bytes() const override { return members_.memory_bytes(); }
  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t seed,
                                               std::int64_t epoch) const override {
    auto order = random_permutation(members_.size(), seed, static_cast<std::uint32_t>(epoch));
    for (std::uint64_t& id : order) id = members_[id];
    return order;
  }

 private:
  SampleSet members_;
};

}  // namespace

std::unique_ptr<SampleOrder> make_random_order(const OrderInputs& inputs) {
  return std::make_unique<RandomOrder>(inputs.members);
}

}  // namespace precast::data
