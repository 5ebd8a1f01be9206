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

/// What happens to a damaged sample, which is a sample for which the source or a field throws a
/// DataError. An IoError and a sample larger than a page always stop the writing.
enum class CorruptPolicy {
  fail,
  /// The sample is left out and listed in the summary.
  skip,
};

/// @throws ConfigError for an unknown name.
[[nodiscard]] PRECAST_API CorruptPolicy corrupt_policy(std::string_view name);

/// How a dataset is written. Of these options only `layout` and `on_corrupt` change the file.
struct WriteOptions {
  BetonLayout layout;
  /// MCUs between the checkpoints of the JPEG index of the first image field, which is written next
  /// to the file (jpeg_sidecar.h); 0: none.
  std::size_t index_interval = 0;
  /// Threads that read and encode samples; at least 1.
  int workers = 1;
  CorruptPolicy on_corrupt = CorruptPolicy::fail;
  /// Called after each sample, on the calling thread, with the numbers of samples and bytes laid
  /// out so far.
  std::function<void(std::uint64_t samples, std::uint64_t bytes)> on_progress;
  /// May be set by any thread or signal handler to stop: write_dataset throws Cancelled.
  const std::atomic<bool>* cancel = nullptr;
  FileOps* ops = &posix_file_ops();
};

/// A damaged sample that was left out of the file.
struct SkippedSample {
  /// Index with which the provider was called.
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
  /// Size of the JPEG index; 0: none.
  std::uint64_t index_bytes = 0;
  double seconds = 0;
  /// Sums over the fields and threads. They include the counts of a skipped sample's fields before
  /// its damaged one. With an index, `indexed` counts the JPEGs that have checkpoints.
  Tally tally;
};

/// Thrown when writing was cancelled; no file is left.
class PRECAST_API Cancelled : public Error {
 public:
  Cancelled() : Error("stopped before the file was complete; nothing was written") {}
  ~Cancelled() override;
};

/// One field to write and how to make its encoder; every thread makes its own.
struct FieldPlan {
  std::string name;
  std::function<std::unique_ptr<Field>()> make;
};

/// Returns the sample for position `i` of the file, if no sample before it is skipped. Called from
/// all workers concurrently.
using SampleProvider = std::function<Sample(std::uint64_t i)>;

/// Writes `num_samples` samples, or those of them that are intact. Workers encode ahead, in runs of
/// up to 32 consecutive samples, at most 4 runs per worker, none larger than 1 MiB plus one sample.
/// The calling thread lays them out in order, so the file and its index are the same, byte for
/// byte, for any number of workers. The index becomes visible after its file; the index of an older
/// file is removed before.
/// @throws the first error in file order, with the sample's index and name; DataError if all
/// samples are damaged; ConfigError as BetonWriter, and for an index without an image field;
/// IoError; Cancelled; DeviceError if a worker cannot be started. After any of them no file and no
/// temporary file is left, except that the complete dataset stays, without an index, if only the
/// last step of the index failed: its sync and its rename.
PRECAST_API WriteSummary write_dataset(const std::filesystem::path& path,
                                       const std::vector<FieldPlan>& fields,
                                       std::uint64_t num_samples, const SampleProvider& provider,
                                       const WriteOptions& options);

}  // namespace precast::data
