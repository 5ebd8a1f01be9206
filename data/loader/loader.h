#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/decode/indexed_decoder.h"
#include "data/loader/buffer_pool.h"
#include "data/loader/host_batch.h"
#include "data/order/order.h"
#include "data/transforms/pipeline.h"
#include "framework/api/epoch_request.h"
#include "framework/api/replaced_sample.h"
#include "framework/api/source_times.h"
#include "framework/core/export.h"

namespace precast::data {

class BetonReader;
struct Output;

/// What happens to a sample that cannot be decoded.
enum class OnCorrupt {
  /// Its batch fails with an error.
  fail,
  /// It is replaced by the next intact sample of the file (replacements.h). The batch then contains
  /// the id of the replacement.
  replace,
};

/// Returns the number of workers for one of `local_ranks` processes that share `usable_cores`
/// cores: an equal share of the cores, at least 1. On a host with GPUs, two cores of the share are
/// left free: one for the thread that launches kernels and one for the thread of the backward pass.
/// Without a GPU, no core is left free, because training itself runs on these cores. Torch's thread
/// count is not used, because torchrun sets OMP_NUM_THREADS=1.
[[nodiscard]] constexpr int loader_threads(int usable_cores, int local_ranks, bool gpu_host) {
  return std::max(1, usable_cores / local_ranks - (gpu_host ? 2 : 0));
}

struct LoaderOptions {
  /// Samples per batch, on this rank.
  std::int64_t batch_size = 512;
  /// Number of worker threads; loader_threads() returns a suitable number for the host.
  int workers = 1;
  /// Maximum number of batches that are being filled or are waiting for the consumer, in addition
  /// to the batches that the consumer holds.
  int batches_ahead = 3;
  /// The order of the samples; null: as in the file.
  std::shared_ptr<const SampleOrder> order;
  /// Whether all ranks leave out their last batch if it is incomplete on any rank, as in training.
  /// All ranks then run the same number of steps.
  bool drop_last = false;
  std::uint64_t seed = 0;
  /// true: images are normalised float32, for training on a CPU; false: images are uint8, and the
  /// GPU normalises them. A pipeline that sets the type of its images overrides this.
  bool normalize = false;
  BufferAllocator allocator;
  JpegOptions jpeg;
  /// The JPEG index of the first image field, shared with other loaders of the file; null: no
  /// index.
  std::shared_ptr<JpegIndex> jpeg_index;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  /// Whether to check each value against its checksum before use, if the file has checksums. Images
  /// that are loaded as plans (plan_images) are not checked.
  bool verify = false;
  /// Whether to write plans (ImagePlan) in place of images, for a consumer that has the stored
  /// pixels in a GPU's memory. See plan_images().
  bool plan_images = false;
  /// If it becomes true while stored images are copied to a GPU, the copy ends early, and the pass
  /// has no batches. Null: never.
  const std::atomic<bool>* cancel_copy = nullptr;
  /// For a reader with on_disk access: the maximum memory for pages.
  std::uint64_t cache_bytes = std::uint64_t{256} << 20;
  /// Called ten times a second while next() waits for a batch; if it returns true, next() returns
  /// nothing. With it, a signal can stop a waiting process. Do not set it for the ranks of a run:
  /// they must stop together.
  std::function<bool()> stopped = {};
};

/// The outputs of a loader with these options. @throws the errors of resolve_outputs() and
/// plan_images()
[[nodiscard]] PRECAST_API std::vector<Output> outputs_of_loader(const BetonReader& reader,
                                                                const Pipeline& pipeline,
                                                                const LoaderOptions& options);

/// Number of samples and of batches in a complete pass of one rank. @param samples the size of the
/// order, for all ranks together. @{
[[nodiscard]] PRECAST_API std::int64_t samples_of_pass(std::uint64_t samples,
                                                       const LoaderOptions& options, int world,
                                                       int rank);
[[nodiscard]] PRECAST_API std::int64_t batches_of_pass(std::uint64_t samples,
                                                       const LoaderOptions& options, int world,
                                                       int rank);
/// @}
/// The number of samples for which a batch of a pass has memory: the batch size, or less if the
/// pass of this rank has fewer samples; at least 1.
[[nodiscard]] PRECAST_API std::int64_t samples_of_batch(std::uint64_t samples,
                                                        const LoaderOptions& options, int world = 1,
                                                        int rank = 0);

/// How one worker has spent its time so far, in seconds.
struct WorkerStatistics {
  /// Time not spent waiting for a batch to be opened.
  double busy = 0;
  /// Time spent waiting for a batch to be opened: the open batches had no samples left, usually
  /// because the consumer is slower than the workers.
  double waiting = 0;
  /// CPU time. If it is much less than `busy`, the worker waited for the disk or for a core.
  double cpu = 0;
};

struct LoaderStatistics {
  /// One per worker.
  std::vector<WorkerStatistics> workers;
  std::int64_t samples = 0;
  /// Total size of the blobs of these samples that the outputs need.
  std::uint64_t stored_bytes = 0;
  /// With on_disk access, or for files on a server: the bytes that were read; how often, and for
  /// how many seconds in total, workers waited for these reads; and the peak memory of the pages.
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_waits = 0;
  double seconds_for_disk = 0;
  std::uint64_t cache_peak_bytes = 0;
  /// Sorted by sample.
  std::vector<ReplacedSample> replaced;
};

/// Reads batches from a .beton file with worker threads. Workers take samples from a shared
/// counter, across batch boundaries, so that at the end of a batch no worker waits for a slower
/// one. The content of the batches does not depend on the number or the timing of the workers. Use
/// a loader from one thread only.
class PRECAST_API Loader {
 public:
  /// Borrows `reader`, which must outlive the loader; batches do not need it. @throws ConfigError
  /// if an option is out of range; the errors of outputs_of_loader().
  Loader(const BetonReader& reader, const Pipeline& pipeline, LoaderOptions options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  /// Stops and joins the workers, even in the middle of a pass.
  ~Loader();

  /// Starts a pass. Cancels the previous pass if it is still running. @throws DeviceError if a
  /// thread cannot be started; ConfigError if a transform cannot work on images of this size, if a
  /// batch is too large (BatchLayout), or if cache_bytes is too small for one page; the errors of
  /// the order. After an exception, no pass is running.
  void begin_epoch(const EpochRequest& request);
  /// Returns the next batch in order, or nothing at the end of the pass or if
  /// LoaderOptions::stopped ends the wait.
  /// @throws DataError naming file and sample if a sample of the batch is damaged (with
  /// OnCorrupt::replace, only if all samples of the file are damaged); IoError if data cannot be
  /// read from the disk or the server; ConfigError if an intact sample does not fit its output, for
  /// example because it is larger than pad_to or its number does not fit `convert` (such a sample
  /// is never replaced). Each of these errors ends the pass.
  [[nodiscard]] std::optional<HostBatch> next();
  /// Whether next() would return without waiting.
  [[nodiscard]] bool ready() const;
  /// Waits until ready(), for at most `limit`. For consumers that must also react to signals.
  /// @return ready().
  bool wait_for(std::chrono::milliseconds limit);

  /// Number of batches and of samples in a complete pass of one rank.
  [[nodiscard]] std::int64_t batches(int world = 1, int rank = 0) const;
  [[nodiscard]] std::int64_t samples(int world = 1, int rank = 0) const;
  /// The times in the form in which every source of batches reports them.
  [[nodiscard]] SourceTimes times() const;
  /// Seconds that next() and wait_for() have waited for workers so far.
  [[nodiscard]] double seconds_waited() const;
  /// Statistics since construction. A worker's times are updated every 64 samples, and before and
  /// after each wait for a batch.
  [[nodiscard]] LoaderStatistics statistics() const;

 private:
  class Pass;
  struct Shared;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Pass> pass_;
};

}  // namespace precast::data
