#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "tools/bench/loader_setting.h"

namespace precast::tools {

/// The data of a recipe and how to load it. It replaces the file of a LoaderPoint, and its setting
/// except for `processes`, `image_size_px` and, to round LoaderRunOptions::samples, `batch_size`.
struct RecipeLoading {
  std::function<std::unique_ptr<data::BetonReader>()> open;
  /// The loader options that training would use for the files that the reader has opened. The
  /// reader must live until the options are no longer used.
  std::function<data::LoaderOptions(const data::BetonReader&)> options;
  data::Pipeline pipeline;
};

/// Options of a measurement that are the same for all settings.
struct LoaderRunOptions {
  /// Whether to use centre crops instead of random resized crops and flips.
  bool val = false;
  /// A recipe's pipeline, which replaces these crops and flips; null if there is none.
  std::shared_ptr<const data::Pipeline> pipeline = {};
  /// Number of measured passes; 0: complete passes until `seconds` have passed.
  std::int64_t passes = 0;
  double seconds = 2;
  /// Number of samples to load per pass, rounded up to complete batches. They are the last samples
  /// of the pass. 0: all.
  std::int64_t samples = 0;
  /// Whether to drop the file from the page cache first and to omit the warm-up pass.
  bool cold = false;
  data::OnCorrupt on_corrupt = data::OnCorrupt::fail;
  bool verify = false;
  /// Null: load the file of a LoaderPoint with its setting. Otherwise, on_corrupt, verify, layouts
  /// and `pipeline` have no effect.
  std::shared_ptr<const RecipeLoading> recipe = {};
  /// Layouts of custom fields.
  data::BetonOptions layouts = {};
};

/// Runs loaders of one setting, each in its own process, and measures the time from the moment when
/// all have warmed up to the end of their last pass.
/// @param epoch the number of the first measured pass. @param on_wait called several times a
/// second.
/// @return sums over the processes: images, cpu_seconds, images_per_second, seconds_waited (for
/// workers), worker_seconds_* (SourceTimes); and, in bytes, disk_bytes (read without a mapping,
/// also in the warm-up), planned_bytes (MemoryPlan) and the members of ProcessMemory:
/// peak_resident_bytes, proportional_bytes, anonymous_bytes. Also seconds (of the slowest process),
/// images_per_cpu_second, and replaced: an entry [sample, by, error] for each damaged sample that
/// the sample `by` replaced. If cold, also cached_before: the share of the file that stayed in the
/// page cache, 0 to 1.
/// @throws Error with the message and the exit code of the first process that fails; IoError
[[nodiscard]] nlohmann::ordered_json run_loaders(const std::filesystem::path& file,
                                                 const LoaderSetting& setting,
                                                 const LoaderRunOptions& run_options,
                                                 std::int64_t epoch,
                                                 const std::function<void()>& on_wait);

}  // namespace precast::tools
