#include "data/order/order.h"

#include <fmt/core.h>

#include <utility>

#include "data/beton/reader.h"
#include "data/order/class_balanced_order.h"
#include "data/order/filter.h"
#include "data/order/quasi_random_order.h"
#include "data/order/random_order.h"
#include "data/order/sequential_order.h"
#include "data/order/weighted_order.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Repeats each sample of another order several times in a row.
class RepeatedOrder final : public SampleOrder {
 public:
  RepeatedOrder(std::unique_ptr<SampleOrder> base, std::uint64_t repeats)
      : base_(std::move(base)), repeats_(repeats) {}

  [[nodiscard]] std::uint64_t size() const override { return base_->size() * repeats_; }
  [[nodiscard]] std::uint64_t memory_bytes() const override { return base_->memory_bytes(); }
  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t seed,
                                               std::int64_t epoch) const override {
    std::vector<std::uint64_t> repeated;
    repeated.reserve(size());
    for (const std::uint64_t id : base_->ids(seed, epoch))
      repeated.insert(repeated.end(), repeats_, id);
    return repeated;
  }

 private:
  std::unique_ptr<SampleOrder> base_;
  std::uint64_t repeats_;
};

}  // namespace

SampleOrder::~SampleOrder() = default;

SampleSet select_samples(const BetonReader& reader, const OrderOptions& options) {
  SampleSet chosen = choose_subset(options.subset, reader.size(), reader.path().string());
  if (options.filter.empty()) return chosen;
  const std::vector<std::uint64_t> matching =
      SampleFilter(options.filter).select(reader, chosen[0], chosen[chosen.size() - 1] + 1);
  // Intersects the two lists, which are in ascending order.
  std::vector<std::uint64_t> selected;
  std::uint64_t at = 0;
  for (const std::uint64_t id : matching) {
    while (at < chosen.size() && chosen[at] < id) ++at;
    if (at < chosen.size() && chosen[at] == id) selected.push_back(id);
  }
  if (selected.empty()) {
    throw ConfigError(
        fmt::format("filter: expected at least one matching sample in {}{}, got none for '{}'",
                    options.subset.empty() ? "" : fmt::format("the subset {} of ", options.subset),
                    reader.path().string(), options.filter));
  }
  return SampleSet(std::move(selected));
}

std::vector<OrderProblem> find_problems(const OrderOptions& options) {
  std::vector<OrderProblem> problems;
  if (!is_subset(options.subset)) {
    problems.push_back(
        {"subset", fmt::format("expected {}, got '{}'", kSubsetForms, options.subset)});
  }
  if (options.repeats < 1) {
    problems.push_back({"repeats", fmt::format("expected at least 1, got {}", options.repeats)});
  }
  if (options.filter.empty()) return problems;
  try {
    const SampleFilter check(options.filter);
  } catch (const ConfigError& error) {
    problems.push_back({"filter", error.what()});
  }
  return problems;
}

void register_orders(OrderRegistry& registry) {
  registry.add("sequential", "as in the file", make_sequential_order);
  registry.add("random", "uniformly random, in a different order in each epoch", make_random_order);
  registry.add("quasi_random", "random within a window of pages, for files larger than memory",
               make_quasi_random_order);
  registry.add("weighted", "drawn with replacement, with probabilities in proportion to weights",
               make_weighted_order);
  registry.add("class_balanced", "drawn so that all classes occur equally often",
               make_class_balanced_order);
}

std::shared_ptr<const SampleOrder> make_order(const OrderRegistry& registry,
                                              const BetonReader& reader,
                                              const OrderOptions& options) {
  if (const auto problems = find_problems(options); !problems.empty())
    throw ConfigError(problems[0].option + ": " + problems[0].message);
  auto order = registry.make({options.name, options.part},
                             {reader, options, select_samples(reader, options)});
  if (options.repeats == 1) return order;
  return std::make_shared<RepeatedOrder>(std::move(order),
                                         static_cast<std::uint64_t>(options.repeats));
}

std::shared_ptr<const SampleOrder> make_order(const BetonReader& reader,
                                              const OrderOptions& options) {
  OrderRegistry registry{"order"};
  register_orders(registry);
  return make_order(registry, reader, options);
}

}  // namespace precast::data
