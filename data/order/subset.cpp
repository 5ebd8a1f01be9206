#include "data/order/subset.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>

#include "data/beton/sums.h"
#include "data/order/sample_list.h"
#include "framework/core/error.h"
#include "framework/core/parse_number.h"
#include "framework/core/rng.h"

namespace precast::data {
namespace {

constexpr std::string_view kRandom = "random:";
constexpr char kList = '@';

struct Subset {
  std::uint64_t first = 0;
  /// UINT64_MAX: to the end of the dataset.
  std::uint64_t end = UINT64_MAX;
  /// The number of samples to draw, or 0; and the seed of the draw.
  std::uint64_t drawn = 0;
  std::uint64_t seed = 0;
};

/// `N` or `N:SEED`.
std::optional<Subset> parse_random(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto count = parse_number<std::uint64_t>(text.substr(0, colon));
  const auto seed = colon == std::string_view::npos
                        ? std::optional<std::uint64_t>(0)
                        : parse_number<std::uint64_t>(text.substr(colon + 1));
  if (!count || *count == 0 || !seed) return std::nullopt;
  return Subset{.drawn = *count, .seed = *seed};
}

/// Returns nothing if `text` is not a subset.
std::optional<Subset> parse_subset(std::string_view text) {
  if (text.empty()) return Subset{};
  if (text.starts_with(kRandom)) return parse_random(text.substr(kRandom.size()));
  const std::size_t colon = text.find(':');
  const std::string_view first = colon == std::string_view::npos ? "" : text.substr(0, colon);
  const std::string_view end = colon == std::string_view::npos ? text : text.substr(colon + 1);
  Subset subset;
  if (!first.empty()) {
    const auto number = parse_number<std::uint64_t>(first);
    if (!number) return std::nullopt;
    subset.first = *number;
  }
  if (!end.empty()) {
    const auto number = parse_number<std::uint64_t>(end);
    if (!number) return std::nullopt;
    subset.end = *number;
  }
  if (subset.first >= subset.end) return std::nullopt;
  return subset;
}

SampleSet draw(std::uint64_t size, std::uint64_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> ids =
      random_permutation(size, derived_seed(seed, "subset"), /*epoch=*/0, RandomUse::split);
  ids.resize(count);
  std::ranges::sort(ids);
  return SampleSet(std::move(ids));
}

}  // namespace

bool is_subset(std::string_view text) {
  if (text.starts_with(kList)) return text.size() > 1;
  return parse_subset(text).has_value();
}

SampleSet choose_subset(std::string_view text, std::uint64_t size, std::string_view dataset_name) {
  if (text.starts_with(kList) && text.size() > 1)
    return read_sample_list(text.substr(1), size, dataset_name);
  const std::optional<Subset> subset = parse_subset(text);
  if (!subset) throw ConfigError(fmt::format("subset: expected {}, got '{}'", kSubsetForms, text));
  const std::uint64_t end = subset->end == UINT64_MAX ? size : subset->end;
  if (end > size || subset->first >= end || subset->drawn > size) {
    throw ConfigError(fmt::format("subset: expected a subset of the {} samples of {}, got '{}'",
                                  size, dataset_name, text));
  }
  if (subset->drawn > 0) return draw(size, subset->drawn, subset->seed);
  return {subset->first, end};
}

std::string subset_identity(std::string_view text, std::uint64_t size,
                            std::string_view dataset_name) {
  if (!text.starts_with(kList)) return std::string(text);
  const SampleSet listed = choose_subset(text, size, dataset_name);
  std::vector<std::uint64_t> ids(listed.size());
  for (std::uint64_t i = 0; i < ids.size(); ++i) ids[i] = listed[i];
  return fmt::format("{} listed samples, xxh3 {:016x}", ids.size(),
                     hash_of(std::as_bytes(std::span(ids))));
}

}  // namespace precast::data
