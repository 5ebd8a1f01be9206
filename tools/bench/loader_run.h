#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "tools/bench/loader_setting.h"

namespace precast::tools {

/// How one measurement is made, whatever its setting.
struct LoaderEffort {
  /// Centre crops instead of random resized crops and flips.
  bool val = false;
  /// Passes that are measured; 0: whole passes until `seconds` are over.
  std::int64_t passes = 0;
  double seconds = 2;
  /// Samples of a pass at most (its last ones, in whole batches); 0: all.
  std::int64_t samples = 0;
  /// Without a warm-up pass, from a file that the page cache has forgotten.
  bool cold = false;
  data::OnCorrupt on_corrupt = data::OnCorrupt::fail;
  bool verify = false;
  /// Of custom fields.
  data::BetonOptions layouts = {};
};

/// Runs loaders of one setting, each in a process of its own, and stops the time between the moment
/// when all have warmed up and the end of their last pass.
/// @param epoch of the first measured pass. @param waiting called some times a second.
/// @return images, seconds (of the slowest process), cpu_seconds, images_per_second (the sum of the
/// processes' rates), images_per_cpu_second, seconds_waited for workers, the
/// workers' seconds (SourceTimes), and in bytes disk_bytes read past a mapping, planned_bytes
/// (MemoryPlan), peak_resident_bytes, proportional_bytes (PSS), anonymous_bytes (sums), and
/// replaced: the samples that others took the place of, [sample, by, error].
/// @throws Error as the loader does.
[[nodiscard]] nlohmann::ordered_json run_loaders(const std::filesystem::path& file,
                                                 const LoaderSetting& setting,
                                                 const LoaderEffort& effort, std::int64_t epoch,
                                                 const std::function<void()>& waiting);

}  // namespace precast::tools
