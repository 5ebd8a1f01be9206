#pragma once

#include <algorithm>
#include <string_view>

namespace precast::tools {

/// Keys of a recipe that only say where the datasets are and how they are read. They change no
/// batch.
inline constexpr std::string_view kDataAccessKeys[] = {
    "data.train_dataset", "data.val_dataset",  "data.num_workers", "data.batches_ahead",
    "data.in_memory",     "data.cache_mb",     "data.direct_io",   "data.cache_dir",
    "data.http_retry_s",  "data.jpeg_index_mb"};

/// Keys that only say where a run is written, where its ranks meet, how often it writes to its log,
/// how long it waits, and whether it tries every image size before the first epoch.
inline constexpr std::string_view kExecutionKeys[] = {
    "logging.folder",          "logging.run_id",      "logging.every",
    "data.producer_timeout_s", "dist.address",        "dist.port",
    "dist.timeout_s",          "dist.join_timeout_s", "training.preflight",
    "training.stall_timeout_s"};

/// Whether the key is one of kDataAccessKeys.
[[nodiscard]] inline bool is_data_access_key(std::string_view key) {
  return std::ranges::find(kDataAccessKeys, key) != std::ranges::end(kDataAccessKeys);
}

/// Whether a run has the same results with every value of the key, as long as the contents of the
/// datasets are the same. A resumed run may have another value.
[[nodiscard]] inline bool is_neutral_key(std::string_view key) {
  return is_data_access_key(key) ||
         std::ranges::find(kExecutionKeys, key) != std::ranges::end(kExecutionKeys);
}

}  // namespace precast::tools
