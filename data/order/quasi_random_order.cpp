#include "data/order/quasi_random_order.h"

#include <algorithm>
#include <numeric>

#include "data/beton/reader.h"
#include "data/order/draws.h"
#include "data/order/pages.h"

namespace precast::data {
namespace {

class QuasiRandomOrder final : public SampleOrder {
 public:
  QuasiRandomOrder(const BetonReader& reader, const SampleSet& members, std::uint64_t window_pages)
      : window_pages_(std::max<std::uint64_t>(window_pages, 1)), ids_(members.size()) {
    const std::vector<std::uint64_t> pages = pages_of(reader, members);
    std::vector<std::uint64_t> sorted(members.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::ranges::stable_sort(sorted, {}, [&](std::uint64_t i) { return pages[i]; });
    for (std::uint64_t i = 0; i < sorted.size(); ++i) {
      ids_[i] = members[sorted[i]];
      if (i == 0 || pages[sorted[i]] != pages[sorted[i - 1]]) begins_.push_back(i);
    }
    begins_.push_back(ids_.size());
  }

  [[nodiscard]] std::uint64_t size() const override { return ids_.size(); }
  [[nodiscard]] std::uint64_t memory_bytes() const override {
    return (ids_.size() + begins_.size()) * sizeof(std::uint64_t);
  }

  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t seed,
                                               std::int64_t epoch) const override {
    std::vector<std::uint64_t> closed(begins_.size() - 1);
    std::iota(closed.begin(), closed.end(), 0);
    RandomStream page_stream = order_stream(seed, epoch, OrderStream::groups);
    shuffle<std::uint64_t>(closed, page_stream);

    std::vector<std::uint64_t> samples = ids_;
    RandomStream sample_stream = order_stream(seed, epoch, OrderStream::within_groups);
    RandomStream draws = order_stream(seed, epoch, OrderStream::choices);
    std::vector<OpenPage> open;
    std::vector<std::uint64_t> order;
    order.reserve(samples.size());
    while (order.size() < samples.size()) {
      while (open.size() < window_pages_ && !closed.empty()) {
        const std::uint64_t page = closed.back();
        closed.pop_back();
        shuffle<std::uint64_t>({samples.begin() + static_cast<std::ptrdiff_t>(begins_[page]),
                                samples.begin() + static_cast<std::ptrdiff_t>(begins_[page + 1])},
                               sample_stream);
        open.push_back({begins_[page], begins_[page + 1]});
      }
      OpenPage& drawn = open[draws.below(open.size())];
      order.push_back(samples[drawn.next++]);
      if (drawn.next == drawn.end) {
        drawn = open.back();
        open.pop_back();
      }
    }
    return order;
  }

 private:
  /// The remaining samples of an open page.
  struct OpenPage {
    std::uint64_t next;
    std::uint64_t end;
  };

  std::uint64_t window_pages_;
  /// The ids sorted by page. Page p has ids_[begins_[p]] to ids_[begins_[p + 1] - 1].
  std::vector<std::uint64_t> ids_;
  std::vector<std::uint64_t> begins_;
};

}  // namespace

std::unique_ptr<SampleOrder> make_quasi_random_order(const OrderInputs& inputs) {
  return std::make_unique<QuasiRandomOrder>(inputs.reader, inputs.members,
                                            inputs.options.window_pages);
}

}  // namespace precast::data
