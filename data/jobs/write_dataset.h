#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/write/field.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "framework/core/export.h"

namespace precast::data {

/// What happens to a damaged sample, that is, one for which the source or a field throws a
/// DataError. An IoError, or a sample that is larger than a page, always aborts the writing.
enum class CorruptPolicy {
  fail,
  /// The sample is left out and listed in the summary.
  skip,
};

/// @throws ConfigError for an unknown name.
[[nodiscard]] PRECAST_API CorruptPolicy corrupt_policy(std::string_view name);

/// Options for writing a dataset. Only `layout` and `on_corrupt` affect the content of the file.
struct WriteOptions {
  BetonLayout layout;
  /// Number of MCUs from one checkpoint to the next in the JPEG index of the first image field. The
  /// index is written next to the file (jpeg_sidecar.h). 0: no index.
  std::size_t index_interval = 0;
  /// Threads that read and encode samples; at least 1.
  int workers = 1;
  CorruptPolicy on_corrupt = CorruptPolicy::fail;
  /// Called after each sample, on the thread that called write_dataset(), with the number of
  /// samples that have been laid out or skipped, and the file's size so far.
  std::function<void(std::uint64_t samples, std::uint64_t bytes)> on_progress;
  /// Any thread or signal handler may set it to stop the writing: write_dataset() then throws
  /// Cancelled.
  const std::atomic<bool>* cancel = nullptr;
  FileOps* ops = &posix_file_ops();
};

/// A damaged sample aborted the writing; CorruptPolicy::skip would have left it out.
class PRECAST_API DamagedSample : public Error {
 public:
  explicit DamagedSample(const std::string& message) : Error(message, ExitCode::dataset_invalid) {}
  ~DamagedSample() override;
};

/// A damaged sample that was left out of the file.
struct SkippedSample {
  /// The index that was passed to the provider.
  std::uint64_t index = 0;
  /// Sample::name; empty if the source could not provide it.
  std::string name;
  std::string error;
};

/// The result of writing a dataset.
struct WriteSummary {
  std::uint64_t samples = 0;
  /// In the order of their indices.
  std::vector<SkippedSample> skipped;
  std::uint64_t pages = 0;
  std::uint64_t file_bytes = 0;
  /// Size of the JPEG index; 0 if there is none.
  std::uint64_t index_bytes = 0;
  double seconds = 0;
  /// Sums over all fields and threads. For a skipped sample, they include what was counted before
  /// the error. With an index, `indexed` counts the JPEGs that have checkpoints.
  Tally tally;
};

/// Thrown when writing was cancelled. No new file remains.
class PRECAST_API Cancelled : public Error {
 public:
  Cancelled() : Error("stopped before the file was complete; nothing was written") {}
  ~Cancelled() override;
};

/// A field to write, and a function that creates its encoder. Each thread has its own encoder.
struct FieldPlan {
  std::string name;
  std::function<std::unique_ptr<Field>()> make;
};

/// Returns sample `i`; `i` is also its position in the file, unless an earlier sample is skipped.
/// Called by all workers concurrently.
using SampleProvider = std::function<Sample(std::uint64_t i)>;

/// Writes `num_samples` samples; with CorruptPolicy::skip, only the intact ones. Workers encode
/// ahead, in runs of up to 32 consecutive samples: at most 4 runs per worker, each of at most 1 MiB
/// plus one sample. The calling thread lays out the samples in order, so the file and its index are
/// byte-identical for any number of workers. The index of an older file is removed before the new
/// file becomes visible; the new index becomes visible after it.
/// @throws the first error in file order, with the sample's index and name (DamagedSample for a
/// damaged sample); DataError if all samples are damaged; ConfigError for an index without an image
/// field, and for fewer than 1 worker; the errors of BetonWriter; IoError; Cancelled; DeviceError
/// if a worker cannot be started. After any of these errors, no new file and no temporary file is
/// left, with one exception: if only a step after the dataset's rename failed (the removal of an
/// older FILE.sum, or the sync and rename of the index), the complete dataset stays, without an
/// index.
PRECAST_API WriteSummary write_dataset(const std::filesystem::path& path,
                                       const std::vector<FieldPlan>& fields,
                                       std::uint64_t num_samples, const SampleProvider& provider,
                                       const WriteOptions& options);

}  // namespace precast::data
