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

/// What becomes of a sample that is damaged: one for which the source or a field throws a
/// DataError. What the system refuses (IoError), and a sample larger than a page, end the writing
/// always.
enum class CorruptPolicy {
  fail,
  /// Left out, and listed in the summary.
  skip,
};

/// @throws ConfigError for an unknown name.
[[nodiscard]] PRECAST_API CorruptPolicy corrupt_policy(std::string_view name);

/// How a dataset is written. Nothing here but `layout` and `on_corrupt` changes the file.
struct WriteOptions {
  BetonLayout layout;
  /// Threads that read and encode samples; at least 1.
  int workers = 1;
  CorruptPolicy on_corrupt = CorruptPolicy::fail;
  /// Called after each sample, on the calling thread, with the samples and bytes laid out so far.
  std::function<void(std::uint64_t samples, std::uint64_t bytes)> on_progress;
  /// Set by anybody (a signal handler) to stop: write_dataset throws Cancelled.
  const std::atomic<bool>* cancel = nullptr;
  FileOps* ops = &posix_file_ops();
};

/// A damaged sample that is not in the file.
struct SkippedSample {
  /// As the provider was asked for it.
  std::uint64_t index = 0;
  /// Sample::name; empty if the source could not give it.
  std::string name;
  std::string error;
};

/// What was written.
struct WriteSummary {
  std::uint64_t samples = 0;
  /// In the order of their indices.
  std::vector<SkippedSample> skipped;
  std::uint64_t pages = 0;
  std::uint64_t file_bytes = 0;
  double seconds = 0;
  /// Sum over the fields and threads. Of a skipped sample, what fields before the damaged one did.
  Tally tally;
};

/// Someone asked to stop; nothing was left behind.
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

/// Gives the sample for place `i` of the file (if none before it is skipped). Called from all
/// workers at once.
using SampleProvider = std::function<Sample(std::uint64_t i)>;

/// Writes `num_samples` samples, or those of them that are sound. Workers encode ahead, in runs of
/// up to 32 samples that follow each other, at most 4 runs a worker, none larger than 1 MiB and one
/// more sample; the calling thread lays them out in order, so the file is the same, byte for byte,
/// for any number of workers.
/// @throws the first error in file order, with the sample's index and name; DataError if all are
/// damaged; ConfigError as BetonWriter; IoError; Cancelled; DeviceError if a worker cannot be
/// started. On any of them no file and no temporary file is left.
PRECAST_API WriteSummary write_dataset(const std::filesystem::path& path,
                                       const std::vector<FieldPlan>& fields,
                                       std::uint64_t num_samples, const SampleProvider& provider,
                                       const WriteOptions& options);

}  // namespace precast::data
