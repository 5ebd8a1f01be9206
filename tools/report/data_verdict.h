#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/api/replaced_sample.h"
#include "framework/api/source_times.h"

namespace precast::tools {

/// What a finished training knows about its data.
struct DataFacts {
  double train_seconds = 0;
  /// Of them, how long the model waited for batches.
  double wait_seconds = 0;
  SourceTimes times;
  std::int64_t images = 0;
  /// Pages that this process had to wait for because they were not in memory.
  std::int64_t major_faults = 0;
  int workers = 0;
  /// What `workers` would be without data.num_workers.
  int usable_cores = 0;
  /// data.in_memory.
  std::int64_t in_memory = 1;
  /// Damaged samples, of each dataset.
  std::vector<ReplacedSample> replaced = {};
};

/// What slowed the data down most.
enum class DataLimit { nothing, processing, disk, cores };

/// nothing: the model waited for less than 2 % of the time.
[[nodiscard]] DataLimit find_limit(const DataFacts& facts);

/// One line of how many there are and one for each of the first ten; nothing for none.
[[nodiscard]] std::vector<std::string> describe_replaced(std::span<const ReplacedSample> replaced);

/// What the run waited for and what to change, for people: one line, or two, and then the samples
/// that were replaced.
[[nodiscard]] std::vector<std::string> describe_data(const DataFacts& facts);

}  // namespace precast::tools
