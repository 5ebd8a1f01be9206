#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "data/beton/reader.h"
#include "data/cache/fetch_ahead.h"
#include "data/cache/page_cache.h"
#include "data/cache/read_ahead.h"
#include "data/loader/batch_layout.h"
#include "data/loader/batch_ring.h"
#include "data/loader/loader.h"
#include "data/loader/order_ahead.h"
#include "data/loader/replacements.h"
#include "data/loader/sample_reader.h"
#include "data/loader/worker_clock.h"

namespace precast::data {

/// State shared by all passes of a loader.
struct Loader::Shared {
  /// @throws the errors of Loader's constructor.
  Shared(const BetonReader& beton, const Pipeline& pipeline, LoaderOptions loader_options);

  const BetonReader& reader;
  const LoaderOptions options;
  const std::vector<Output> outputs;
  const std::vector<std::size_t> blob_fields;
  const std::shared_ptr<const SampleOrder> order;
  OrderAhead orders;
  BufferPool pool;
  /// One per worker, kept across passes: scratch memory and time statistics.
  std::vector<SampleReader> readers;
  std::vector<WorkerClock> clocks;
  /// Only for a reader with on_disk access.
  std::optional<PageCache> cache;
  /// Set if damaged samples are replaced.
  std::optional<Replacements> replacements;
  double seconds_waited = 0;
};

/// One pass. start() starts the workers; the destructor stops and joins them.
///
/// Workers draw tickets from one counter and wait while their batch is not yet open in the ring. A
/// ticket stands for a run of consecutive samples of the pass, all in one batch.
class Loader::Pass {
 public:
  /// @param samples, batches the numbers of samples and batches of this rank's complete pass.
  Pass(Shared& shared, const EpochRequest& request, std::int64_t samples, std::int64_t batches);
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  ~Pass();

  /// Starts the workers. The constructor does not do this: if it threw because a thread cannot be
  /// started, no destructor would end the threads that already run. @throws DeviceError if a
  /// thread cannot be started.
  void start();
  [[nodiscard]] bool ready() { return ring_.ready(); }
  bool wait_for(std::chrono::milliseconds limit) {
    return ring_.wait(std::chrono::steady_clock::now() + limit, shared_.seconds_waited);
  }
  std::optional<HostBatch> next();

 private:
  /// The position of this rank's sample `index` in the global order.
  [[nodiscard]] std::uint64_t position(std::int64_t index) const {
    return static_cast<std::uint64_t>(index * request_.world + request_.rank);
  }
  [[nodiscard]] std::uint64_t id(std::int64_t index) const {
    return ids_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::int64_t first_sample() const;
  [[nodiscard]] std::vector<std::uint64_t> ids_of_rank() const;

  /// Plans the reads of all batches that the pass returns, and starts them.
  void start_reading();
  void work(SampleReader& reader, WorkerClock& clock);
  /// Fills the rows of one ticket, from row `first` of the batch on.
  void fill(SampleReader& reader, WorkerClock& clock, std::int64_t batch, std::int64_t first);
  /// @return the id of the sample that was read: the sample at `index`, or its replacement.
  std::uint64_t read_sample(SampleReader& reader, std::int64_t index, std::size_t row,
                            BatchSlot& slot);
  /// Reads a sample from the mapping, or from the page that the cache holds for it.
  void read_planned(SampleReader& reader, const SampleKey& key, std::int64_t index, std::size_t row,
                    const BatchSlot& slot);

  Shared& shared_;
  const EpochRequest request_;
  const std::int64_t samples_;
  const std::int64_t batches_;
  /// The ids of this rank's samples, in order.
  const std::vector<std::uint64_t> ids_;
  BatchLayout layout_;
  BatchRing ring_;
  /// Only for a mapped file.
  std::optional<ReadAhead> read_ahead_;
  /// Only for files on a server.
  std::optional<FetchAhead> fetch_ahead_;
  /// Samples per ticket, and tickets per batch.
  const std::int64_t run_;
  const std::int64_t runs_per_batch_;
  alignas(64) std::atomic<std::int64_t> next_ticket_{0};
  std::vector<std::jthread> workers_;
};

}  // namespace precast::data
