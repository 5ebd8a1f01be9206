#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "framework/api/communicator.h"
#include "framework/api/replaced_sample.h"
#include "framework/core/export.h"

namespace precast::engine {

/// The damaged samples of a run that were replaced (data.on_corrupt: replace), each list sorted by
/// sample.
struct ReplacedSamples {
  std::vector<ReplacedSample> train;
  std::vector<ReplacedSample> val;
};

/// Returns the samples of both lists, sorted. If a sample is in both, its `times` are added up.
[[nodiscard]] PRECAST_API std::vector<ReplacedSample> merge_replaced(
    std::span<const ReplacedSample> one, std::span<const ReplacedSample> other);
/// The merged lists of all ranks, on every rank. Collective.
[[nodiscard]] PRECAST_API std::vector<ReplacedSample> gather_replaced(
    std::span<const ReplacedSample> mine, Communicator& ranks);

/// Converts the lists to JSON for a checkpoint: at most the first 1,000 samples of each, so that a
/// checkpoint stays small. A resumed run detects the remaining ones again in its next epoch.
[[nodiscard]] nlohmann::ordered_json to_json(const ReplacedSamples& samples);
/// Reads what to_json() wrote. @throws nlohmann::json's exceptions
[[nodiscard]] ReplacedSamples replaced_samples_from_json(const nlohmann::ordered_json& json);

}  // namespace precast::engine
