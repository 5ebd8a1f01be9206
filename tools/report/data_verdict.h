#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/api/replaced_sample.h"
#include "framework/api/source_times.h"

namespace precast::tools {

/// Facts about the data loading of rank 0 in a finished training run. Times cover the whole run,
/// even if it was resumed; page faults are those of this process only.
struct DataFacts {
  double train_seconds = 0;
  /// The part of the training time during which the model waited for batches.
  double wait_seconds = 0;
  SourceTimes times;
  /// The number of images on which this process has trained. Images of other ranks, and those
  /// before the run was resumed, are not counted.
  std::int64_t process_images = 0;
  /// How often this process waited until a memory page was read from disk (major page faults).
  std::int64_t major_faults = 0;
  int workers = 0;
  /// The default of data.num_workers (data::loader_threads()).
  int default_workers = 0;
  /// Whether the training set contains JPEGs.
  bool has_jpegs = false;
  /// data.in_memory.
  std::int64_t in_memory = 1;
  /// Damaged samples that were replaced, of all datasets.
  std::vector<ReplacedSample> replaced = {};
};

/// The main cause of slow data loading.
enum class DataBottleneck { nothing, processing, disk, cores, copies };

/// Returns `copies` if the GPU copied batches for at least 90 % of the training time. The model
/// then probably waits for them on the GPU; wait_seconds does not contain that time. Returns
/// `nothing` if the model waited for less than 2 % of the time, if the loader threads were ahead of
/// it for at least half of their time, or if nothing was measured.
[[nodiscard]] DataBottleneck find_bottleneck(const DataFacts& facts);

/// Returns a line with the number of replaced samples, one for each of the first ten, and, if there
/// are more, one with the number of further ones. Empty if no sample was replaced.
[[nodiscard]] std::vector<std::string> describe_replaced(std::span<const ReplacedSample> replaced);

/// Describes what the run waited for and what to change, in one or two lines, followed by the lines
/// of describe_replaced().
[[nodiscard]] std::vector<std::string> describe_data(const DataFacts& facts);

}  // namespace precast::tools
