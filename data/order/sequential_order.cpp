#include "data/order/sequential_order.h"

namespace precast::data {
namespace {

class SequentialOrder final : public SampleOrder {
 public:
  explicit SequentialOrder(SampleSet members) : members_(std::move(members)) {}

  [[nodiscard]] std::uint64_t size() const override { return members_.size(); }
  [[nodiscard]] std::uint64_t memory_bytes() const override { return members_.memory_bytes(); }
  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t /*seed*/,
                                               std::int64_t /*epoch*/) const override {
    std::vector<std::uint64_t> order(members_.size());
    for (std::uint64_t i = 0; i < order.size(); ++i) order[i] = members_[i];
    return order;
  }

 private:
  SampleSet members_;
};

}  // namespace

std::unique_ptr<SampleOrder> make_sequential_order(const OrderInputs& inputs) {
  return std::make_unique<SequentialOrder>(inputs.members);
}

}  // namespace precast::data
