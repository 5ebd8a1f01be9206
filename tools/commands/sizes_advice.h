#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/sizes_measure.h"

namespace precast::tools {

/// The resources of a machine, and the needs of a training run.
struct Machine {
  std::optional<double> ram_bytes;
  int cores = 1;
  std::optional<double> target_images_per_second;
};

struct Advice {
  MeasuredWay way;
  /// Whether the dataset fits in memory, and whether the cores are fast enough.
  bool fits = true;
  bool keeps_up = true;
  /// The reason, as a sentence.
  std::string why;
};

/// The share of memory that a dataset may use; the rest is for the training processes.
inline constexpr double kMemoryShare = 0.9;

/// Chooses the way with the best image quality that fits in memory and is fast enough: JPEGs of at
/// least quality 90 and pixels come before lower qualities, then larger images come first (from 512
/// px on, sizes count as equal), then fewer bytes. If no way meets both conditions, chooses the one
/// with the smallest shortfall. @param ways at least one.
[[nodiscard]] Advice advise(const std::vector<MeasuredWay>& ways, std::uint64_t images,
                            const Machine& machine);

/// The options of `precast write` for this way.
[[nodiscard]] std::string write_options(const StorageWay& way);
/// `jpg`, `raw` or `proportion .5`.
[[nodiscard]] std::string mode_text(const StorageWay& way);

}  // namespace precast::tools
