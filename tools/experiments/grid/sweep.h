#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"
#include "tools/experiments/grid/axis.h"
#include "tools/experiments/grid/early_stop.h"
#include "tools/experiments/trial/slot.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// The contents of SWEEP.yaml, and the trials that result from it.
struct Sweep {
  std::filesystem::path path;
  std::filesystem::path recipe;
  /// Contains sweep.json, the journals and, in `runs`, a run folder for each trial.
  std::filesystem::path folder;
  /// The axes (including seeds), then the fixed keys of `set` and of the command line, with the
  /// locations of their values.
  std::vector<SweepAxis> axes;
  /// The keys of the axes, without training.seed.
  std::vector<std::string> varied;
  /// The order depends only on the file: seeds change fastest, then the values of the last axis.
  std::vector<Trial> trials;
  /// A figure of summary.json, and whether larger is better.
  std::string metric = "top_1";
  bool maximise = true;
  SlotOptions slots;
  /// The location of `grid.devices`.
  Origin devices_origin;
  /// Whether trials that load the same data share a loader process (shared_loaders.h).
  bool share_loader = false;
  /// The keys given on the command line; they are in all trials' settings.
  std::vector<Setting> overrides;
  int max_retries = 2;
  std::chrono::milliseconds retry_pause{5000};
  EarlyStopOptions early_stop;
};

/// Reads a sweep (README.md describes the format). Paths are relative to the working folder, as in
/// recipes. @param overrides keys of the recipe to set in all trials. They replace the same keys of
/// `set`, and must not be axes. @throws ConfigError with all mistakes, as `file:line:col: key:
/// message`; IoError if the file cannot be read, or if the only mistake is a missing recipe.
[[nodiscard]] Sweep read_sweep(const std::filesystem::path& path,
                               const std::vector<Override>& overrides = {});

/// Returns the location in the sweep at which `key` of `trial` was given, or the file if it was not
/// given.
[[nodiscard]] Origin origin_of(const Sweep& sweep, const Trial& trial, std::string_view key);

/// Returns the trial's values of the keys `sweep.varied`. Trials with the same values are
/// repetitions of one another.
[[nodiscard]] std::vector<std::string> group_of(const Sweep& sweep, const Trial& trial);

}  // namespace precast::tools
