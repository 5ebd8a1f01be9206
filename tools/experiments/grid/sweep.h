#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/config/node.h"
#include "tools/experiments/grid/axis.h"
#include "tools/experiments/grid/early_stop.h"
#include "tools/experiments/trial/slot.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// What SWEEP.yaml says, with its trials laid out.
struct Sweep {
  std::filesystem::path path;
  std::filesystem::path recipe;
  /// Holds sweep.json, results.jsonl and a run folder for each trial.
  std::filesystem::path folder;
  /// `set` and the axes, where they were written: for messages.
  std::vector<SweepAxis> axes;
  /// The keys of the axes, without training.seed.
  std::vector<std::string> varied;
  /// In an order that is a function of the file alone: the last axis turns fastest, seeds fastest
  /// of all.
  std::vector<Trial> trials;
  /// A figure of summary.json, and whether more of it is better.
  std::string metric = "top_1";
  bool maximise = true;
  SlotOptions slots;
  int max_retries = 2;
  std::chrono::milliseconds retry_pause{5000};
  EarlyStopOptions early_stop;
};

/// Reads a sweep (README.md says what may stand in it). Paths are relative to the working folder,
/// as in recipes. @throws ConfigError with all that is wrong, as `file:line:col: key: message`.
/// @throws IoError if the file cannot be read.
[[nodiscard]] Sweep read_sweep(const std::filesystem::path& path);

/// Where `key` of `trial` was given in the sweep; the file itself if it was not.
[[nodiscard]] Origin origin_of(const Sweep& sweep, const Trial& trial, std::string_view key);

/// The values of `sweep.varied`: trials that share them are repetitions of one another.
[[nodiscard]] std::vector<std::string> group_of(const Sweep& sweep, const Trial& trial);

}  // namespace precast::tools
