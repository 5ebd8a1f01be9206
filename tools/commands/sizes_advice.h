#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/sizes_measure.h"

namespace precast::tools {

/// The resources of a machine, and the rate at which a training run needs images.
struct Machine {
  std::optional<double> ram_bytes;
  int cores = 1;
  std::optional<double> target_images_per_second;
};

struct Advice {
  MeasuredSettings settings;
  /// Whether the dataset fits in memory, and whether the cores are fast enough.
  bool fits = true;
  bool keeps_up = true;
  /// The reason, as a sentence.
  std::string why;
};

/// The fraction of the memory that a dataset may use; the training processes need the remaining
/// memory.
inline constexpr double kMemoryShare = 0.9;

/// Of the ways of storing images that fit in memory and are fast enough, chooses the one with the
/// best quality. Pixels and JPEGs of quality 90 or more are better than lower qualities. Otherwise,
/// larger images are better (all sizes from 512 px on, and unlimited sizes, count as 512 px), then
/// higher qualities up to 90, then fewer bytes. If no way meets both requirements, chooses the
/// closest one.
/// @param candidates at least one.
[[nodiscard]] Advice advise(const std::vector<MeasuredSettings>& candidates, std::uint64_t images,
                            const Machine& machine);

/// The options of `precast write` for these settings.
[[nodiscard]] std::string write_options(const StorageSettings& settings);
/// `jpg`, `raw` or `proportion 0.5`.
[[nodiscard]] std::string mode_text(const StorageSettings& settings);

}  // namespace precast::tools
