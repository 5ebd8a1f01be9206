#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/loader/buffer_pool.h"
#include "data/loader/host_batch.h"
#include "data/order/order.h"
#include "data/transforms/pipeline.h"
#include "framework/api/epoch_request.h"
#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

struct LoaderOptions {
  /// Samples a batch, on this rank.
  std::int64_t batch_size = 512;
  int workers = 1;
  /// Batches being filled or waiting, beside those that the consumer holds.
  int batches_ahead = 3;
  OrderKind order = OrderKind::sequential;
  /// Leaves out the last, smaller batch (training), so that all ranks take the same number of
  /// steps.
  bool drop_last = false;
  std::uint64_t seed = 0;
  /// Whether images come out as float32, normalised (for CPUs), or as uint8 (for GPUs, which
  /// normalise themselves).
  bool normalize = false;
  BufferAllocator allocator;
};

/// Reads batches of a .beton file with worker threads. Threads take one sample after the other from
/// one counter, across the borders of batches, so none waits for a slower one. The batches' content
/// depends on the seed, the epoch and the order alone, not on the threads. One thread may use a
/// loader.
class PRECAST_API Loader {
 public:
  /// Borrows `reader`, which outlives the loader and the batches. @throws ConfigError if an option
  /// is out of range or the pipeline does not fit the file.
  Loader(const BetonReader& reader, const Pipeline& pipeline, LoaderOptions options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  /// Stops and joins the workers, also in the middle of a pass.
  ~Loader();

  /// Starts a pass and gives up one that is still running. @throws DeviceError if a worker cannot
  /// be started; there is no pass then.
  void begin_epoch(const EpochRequest& request);
  /// The next batch in order, or nothing at the end of the pass.
  /// @throws DataError naming file and sample if a sample of that batch is damaged; the pass is
  /// then over.
  [[nodiscard]] std::optional<HostBatch> next();
  /// Whether next() would return at once.
  [[nodiscard]] bool ready() const;

  /// Batches and samples of a whole pass of one rank.
  [[nodiscard]] std::int64_t batches(int world = 1, int rank = 0) const;
  [[nodiscard]] std::int64_t samples(int world = 1, int rank = 0) const;
  /// Seconds that next() has waited for workers so far.
  [[nodiscard]] double seconds_waited() const;

 private:
  class Pass;
  struct Shared;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Pass> pass_;
};

}  // namespace precast::data
