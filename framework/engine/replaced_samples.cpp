#include "framework/engine/replaced_samples.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/core/dump_json.h"

namespace precast::engine {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxSaved = 1000;

ordered_json json_of(std::span<const ReplacedSample> samples) {
  ordered_json list = ordered_json::array();
  for (const ReplacedSample& entry : samples)
    list.push_back({entry.sample, entry.by, entry.times, entry.error});
  return list;
}

std::vector<ReplacedSample> samples_from_json(const ordered_json& list) {
  std::vector<ReplacedSample> samples;
  for (const ordered_json& entry : list) {
    samples.push_back({.sample = entry.at(0).get<std::uint64_t>(),
                       .by = entry.at(1).get<std::uint64_t>(),
                       .times = entry.at(2).get<std::int64_t>(),
                       .error = entry.at(3).get<std::string>()});
  }
  return samples;
}

}  // namespace

std::vector<ReplacedSample> merge_replaced(std::span<const ReplacedSample> one,
                                           std::span<const ReplacedSample> other) {
  std::map<std::uint64_t, ReplacedSample> all;
  for (const auto& list : {one, other}) {
    for (const ReplacedSample& entry : list) {
      const auto [found, is_new] = all.try_emplace(entry.sample, entry);
      if (!is_new) found->second.times += entry.times;
    }
  }
  std::vector<ReplacedSample> merged;
  for (const auto& [sample, entry] : all) merged.push_back(entry);
  return merged;
}

std::vector<ReplacedSample> gather_replaced(std::span<const ReplacedSample> mine,
                                            Communicator& ranks) {
  // Errors contain paths, which may not be UTF-8.
  const std::string text = dump_json(json_of(mine));
  std::vector<ReplacedSample> all;
  for (const std::string& list : ranks.all_gather(text))
    all = merge_replaced(all, samples_from_json(ordered_json::parse(list)));
  return all;
}

ordered_json to_json(const ReplacedSamples& samples) {
  const auto first = [](std::span<const ReplacedSample> list) {
    return json_of(list.first(std::min(list.size(), kMaxSaved)));
  };
  return {{"train", first(samples.train)}, {"val", first(samples.val)}};
}

ReplacedSamples replaced_samples_from_json(const ordered_json& json) {
  return {.train = samples_from_json(json.at("train")), .val = samples_from_json(json.at("val"))};
}

}  // namespace precast::engine
