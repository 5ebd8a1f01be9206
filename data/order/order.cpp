#include "data/order/order.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>
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

/// Each sample of another order several times in a row.
class RepeatedOrder final : public SampleOrder {
 public:
  RepeatedOrder(std::unique_ptr<SampleOrder> once, std::uint64_t repeats)
      : once_(std::move(once)), repeats_(repeats) {}

  [[nodiscard]] std::uint64_t size() const override { return once_->size() * repeats_; }
  [[nodiscard]] std::uint64_t memory_bytes() const override { return once_->memory_bytes(); }
  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t seed,
                                               std::int64_t epoch) const override {
    std::vector<std::uint64_t> repeated;
    repeated.reserve(size());
    for (const std::uint64_t id : once_->ids(seed, epoch))
      repeated.insert(repeated.end(), repeats_, id);
    return repeated;
  }

 private:
  std::unique_ptr<SampleOrder> once_;
  std::uint64_t repeats_;
};

struct Range {
  std::uint64_t first = 0;
  /// UINT64_MAX: to the file's end.
  std::uint64_t end = UINT64_MAX;
};

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return count;
}

/// Nothing if `text` is no subset.
std::optional<Range> parse_subset(std::string_view text) {
  if (text.empty()) return Range{};
  const std::size_t colon = text.find(':');
  const std::string_view first = colon == std::string_view::npos ? "" : text.substr(0, colon);
  const std::string_view end = colon == std::string_view::npos ? text : text.substr(colon + 1);
  Range range;
  if (!first.empty()) {
    const auto number = parse_count(first);
    if (!number) return std::nullopt;
    range.first = *number;
  }
  if (!end.empty()) {
    const auto number = parse_count(end);
    if (!number) return std::nullopt;
    range.end = *number;
  }
  if (range.first >= range.end) return std::nullopt;
  return range;
}

Members choose_members(const BetonReader& reader, const OrderOptions& options) {
  Range range = *parse_subset(options.subset);
  if (range.end == UINT64_MAX) range.end = reader.size();
  if (range.end > reader.size() || range.first >= range.end) {
    throw ConfigError(fmt::format("subset: expected samples below the {} of {}, got '{}'",
                                  reader.size(), reader.path().string(), options.subset));
  }
  if (options.filter.empty()) return {range.first, range.end};
  std::vector<std::uint64_t> kept =
      SampleFilter(options.filter).select(reader, range.first, range.end);
  if (kept.empty()) {
    throw ConfigError(fmt::format("filter: expected to keep samples of {}, but '{}' keeps none",
                                  reader.path().string(), options.filter));
  }
  return Members(std::move(kept));
}

}  // namespace

SampleOrder::~SampleOrder() = default;

std::vector<OrderProblem> find_problems(const OrderOptions& options) {
  std::vector<OrderProblem> problems;
  if (!parse_subset(options.subset)) {
    problems.push_back(
        {"subset",
         fmt::format("expected a number of samples (1000) or a range (1000:2000), got '{}'",
                     options.subset)});
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
  registry.add("random", "uniformly random, another order each epoch", make_random_order);
  registry.add("quasi_random", "random within a window of open pages, for files larger than memory",
               make_quasi_random_order);
  registry.add("weighted", "drawn with replacement by weights", make_weighted_order);
  registry.add("class_balanced", "every class as often as every other one",
               make_class_balanced_order);
}

std::shared_ptr<const SampleOrder> make_order(const OrderRegistry& registry,
                                              const BetonReader& reader,
                                              const OrderOptions& options) {
  if (const auto problems = find_problems(options); !problems.empty())
    throw ConfigError(problems[0].option + ": " + problems[0].message);
  auto order = registry.make({options.name, options.part},
                             {reader, options, choose_members(reader, options)});
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
