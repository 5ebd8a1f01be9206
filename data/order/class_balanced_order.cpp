#include "data/order/class_balanced_order.h"

#include <map>

#include "data/beton/reader.h"
#include "data/order/draws.h"
#include "data/order/labels.h"

namespace precast::data {
namespace {

class ClassBalancedOrder final : public SampleOrder {
 public:
  explicit ClassBalancedOrder(const std::map<std::int64_t, std::vector<std::uint64_t>>& classes) {
    for (const auto& [label, members] : classes) {
      begins_.push_back(ids_.size());
      ids_.insert(ids_.end(), members.begin(), members.end());
    }
    begins_.push_back(ids_.size());
  }

  [[nodiscard]] std::uint64_t size() const override { return ids_.size(); }
  [[nodiscard]] std::uint64_t memory_bytes() const override {
    return (ids_.size() + begins_.size()) * sizeof(std::uint64_t);
  }

  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t seed,
                                               std::int64_t epoch) const override {
    const std::size_t classes = begins_.size() - 1;
    RandomStream class_stream = order_stream(seed, epoch, OrderStream::groups);
    RandomStream sample_stream = order_stream(seed, epoch, OrderStream::within_groups);
    std::vector<std::uint64_t> samples = ids_;
    std::vector<std::uint64_t> next(begins_.begin(), begins_.end() - 1);
    std::vector<std::uint64_t> round;
    std::vector<std::uint64_t> order(ids_.size());
    for (std::uint64_t p = 0; p < order.size(); ++p) {
      if (p % classes == 0) {
        round.resize(classes);
        for (std::size_t c = 0; c < classes; ++c) round[c] = c;
        shuffle<std::uint64_t>(round, class_stream);
      }
      const std::uint64_t c = round[p % classes];
      if (next[c] == begins_[c + 1]) next[c] = begins_[c];
      if (next[c] == begins_[c]) {
        shuffle<std::uint64_t>({samples.begin() + static_cast<std::ptrdiff_t>(begins_[c]),
                                samples.begin() + static_cast<std::ptrdiff_t>(begins_[c + 1])},
                               sample_stream);
      }
      order[p] = samples[next[c]++];
    }
    return order;
  }

 private:
  /// The ids sorted by class. Class c has ids_[begins_[c]] to ids_[begins_[c + 1] - 1].
  std::vector<std::uint64_t> ids_;
  std::vector<std::uint64_t> begins_;
};

}  // namespace

std::unique_ptr<SampleOrder> make_class_balanced_order(const OrderInputs& inputs) {
  const std::size_t field = label_field(inputs.reader, inputs.options.label_field);
  std::map<std::int64_t, std::vector<std::uint64_t>> classes;
  for (std::uint64_t i = 0; i < inputs.members.size(); ++i)
    classes[inputs.reader.integer(inputs.members[i], field)].push_back(inputs.members[i]);
  return std::make_unique<ClassBalancedOrder>(classes);
}

}  // namespace precast::data
