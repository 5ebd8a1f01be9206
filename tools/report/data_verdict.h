#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/api/replaced_sample.h"
#include "framework/api/source_times.h"

namespace precast::tools {

/// Facts about the data loading of rank 0 in a finished training run. Times are totals of the run,
/// including those before it was resumed; the page faults are counted only in this process.
struct DataFacts {
  double train_seconds = 0;
  /// The part of the training time during which the model waited for batches.
  double wait_seconds = 0;
  SourceTimes times;
  /// Images on which this process has trained: without those of other ranks, and without those
  /// before the run was resumed.
  std::int64_t process_images = 0;
  /// Major page faults of this process: the number of memory pages that it waited for, because they
  /// were not in memory.
  std::int64_t major_faults = 0;
  int workers = 0;
  /// The default of data.num_workers (data::loader_threads()).
  int default_workers = 0;
  /// Whether the training set contains JPEGs.
  bool has_jpegs = false;
  /// data.in_memory.
  std::int64_t in_memory = 1;
  /// Damaged samples of all datasets.
  std::vector<ReplacedSample> replaced = {};
};

/// The main cause of slow data loading.
enum class DataBottleneck { nothing, processing, disk, cores, copies };

/// copies: the GPU copied batches for at least 90 % of the training time. The model then probably
/// waits for them on the GPU, which wait_seconds does not contain. nothing: no cause can be named,
/// because the model waited for less than 2 % of the time, the threads were ahead of it for at
/// least half of their time, or nothing was measured.
[[nodiscard]] DataBottleneck find_bottleneck(const DataFacts& facts);

/// One line with the number of replaced samples, and one for each of the first ten; empty if there
/// are none.
[[nodiscard]] std::vector<std::string> describe_replaced(std::span<const ReplacedSample> replaced);

/// A human-readable text that states what the run waited for and what to change: one or two lines,
/// followed by the replaced samples.
[[nodiscard]] std::vector<std::string> describe_data(const DataFacts& facts);

}  // namespace precast::tools
