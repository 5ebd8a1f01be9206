#include "data/loader/loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "data/beton/layout.h"
#include "data/beton/reader.h"
#include "data/cache/page_cache.h"
#include "data/cache/read_ahead.h"
#include "data/loader/batch_layout.h"
#include "data/loader/order_ahead.h"
#include "data/loader/replacements.h"
#include "data/loader/sample_bytes.h"
#include "data/loader/sample_reader.h"
#include "data/loader/worker_clock.h"
#include "framework/core/error.h"
#include "framework/core/failpoint.h"

namespace precast::data {
namespace {

/// One batch being filled. Its atomics are on cache lines of their own.
struct Slot {
  alignas(64) std::atomic<std::int64_t> remaining{0};
  std::shared_ptr<std::byte> memory;
  std::mutex error_mutex;
  std::int64_t error_index = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr error;
  /// What stands in each row.
  std::vector<std::uint64_t> sample_ids;
};

/// Most samples that a worker takes at once: where batches are large, so that quick samples (40 us)
/// are not slowed by the counter that all threads share.
constexpr std::int64_t kLongestRun = 8;

std::int64_t run_length(const LoaderOptions& options) {
  return std::clamp<std::int64_t>(options.batch_size / (4 * std::int64_t{options.workers}), 1,
                                  kLongestRun);
}

}  // namespace

/// What stays the same over all passes.
struct Loader::Shared {
  Shared(const BetonReader& beton, const Pipeline& pipeline, LoaderOptions loader_options)
      : reader(beton),
        options(std::move(loader_options)),
        outputs(resolve_outputs(beton, pipeline, options.normalize)),
        blob_fields(blob_fields_of(outputs)),
        order(options.order ? options.order : make_order(beton, {})),
        orders(*order, options.seed),
        pool(options.allocator.allocate ? options.allocator : heap_allocator()),
        clocks(static_cast<std::size_t>(std::max(options.workers, 0))) {
    if (options.batch_size < 1 || options.workers < 1 || options.batches_ahead < 1) {
      throw ConfigError(
          fmt::format("loader: expected batch_size, workers and batches_ahead >= 1, got {}, {}, {}",
                      options.batch_size, options.workers, options.batches_ahead));
    }
    for (int w = 0; w < options.workers; ++w)
      readers.emplace_back(reader, outputs, options.seed,
                           JpegDecoding{options.jpeg, options.jpeg_index.get()}, options.verify);
    if (options.on_corrupt == OnCorrupt::replace)
      replacements.emplace(reader, outputs, options.jpeg, options.verify);
    require(!options.jpeg_index || options.jpeg_index->samples() == reader.size(),
            "the index is that of the file");
    if (reader.disk() != nullptr)
      cache.emplace(*reader.disk(), PageCacheOptions{.budget_bytes = options.cache_bytes});
  }

  const BetonReader& reader;
  const LoaderOptions options;
  const std::vector<Output> outputs;
  const std::vector<std::size_t> blob_fields;
  const std::shared_ptr<const SampleOrder> order;
  OrderAhead orders;
  BufferPool pool;
  /// One a worker, kept over passes: scratch memory, and where time goes.
  std::vector<SampleReader> readers;
  std::vector<WorkerClock> clocks;
  /// For a reader with on_disk access.
  std::optional<PageCache> cache;
  /// Where damaged samples are replaced.
  std::optional<Replacements> replacements;
  double seconds_waited = 0;
};

/// One pass. start() starts the workers, the destructor stops and joins them.
///
/// Batch b is filled in slot b % batches_ahead. Workers draw tickets (runs of the pass's samples,
/// in order, none across two batches) from one counter and wait while their batch is not yet open;
/// next() takes the finished batch out of its slot and opens the slot for batch b + batches_ahead
/// with other memory. So a consumer that keeps batches costs memory and never a stall.
class Loader::Pass {
 public:
  Pass(Shared& shared, const EpochRequest& request, std::int64_t samples, std::int64_t batches)
      : shared_(shared),
        request_(request),
        samples_(samples),
        batches_(batches),
        ids_(ids_of_rank()),
        layout_(shared.outputs, shared.options.batch_size, request.image_size_px),
        slots_(static_cast<std::size_t>(shared.options.batches_ahead)),
        delivered_(request.first_batch),
        run_(run_length(shared.options)),
        runs_per_batch_((shared.options.batch_size + run_ - 1) / run_) {
    shared.pool.set_size(layout_.bytes());
    if (const MappedFile* mapped = shared.reader.mapping())
      read_ahead_.emplace(
          *mapped,
          [this](std::int64_t i) { return ranges_of(shared_.reader, shared_.blob_fields, id(i)); },
          first_sample(), samples);
    next_ticket_ = request.first_batch * runs_per_batch_;
    opened_ = request.first_batch;
    for (int slot = 0; slot < shared.options.batches_ahead; ++slot) open_next_slot();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  ~Pass() {
    stopping_ = true;
    opened_ = std::numeric_limits<std::int64_t>::max();
    opened_.notify_all();
    if (shared_.cache) shared_.cache->interrupt();
    workers_.clear();
    if (shared_.cache) shared_.cache->end();
  }

  /// Not in the constructor: when a thread cannot be started, only the destructor of a complete
  /// object ends those that run already. @throws DeviceError
  void start() {
    if (shared_.cache) start_reading();
    workers_.reserve(shared_.readers.size());
    try {
      for (std::size_t w = 0; w < shared_.readers.size(); ++w)
        workers_.emplace_back([this, w] { work(shared_.readers[w], shared_.clocks[w]); });
    } catch (const std::system_error& error) {
      throw DeviceError(fmt::format("loader: cannot start thread {} of {}: {}. Use fewer workers",
                                    workers_.size() + 1, shared_.readers.size(),
                                    error.code().message()));
    }
  }

  [[nodiscard]] bool ready() {
    return delivered_ >= batches_ || stopping_ || slot_of(delivered_).remaining <= 0;
  }

  std::optional<HostBatch> next() {
    if (delivered_ >= batches_ || stopping_) return std::nullopt;
    Slot& slot = slot_of(delivered_);
    wait_until_full(slot);
    if (slot.error) {
      stopping_ = true;
      std::rethrow_exception(slot.error);
    }
    HostBatch batch = describe(slot);
    ++delivered_;
    open_next_slot();
    return batch;
  }

 private:
  Slot& slot_of(std::int64_t batch) {
    return slots_[static_cast<std::size_t>(batch) % slots_.size()];
  }
  [[nodiscard]] std::int64_t batch_start(std::int64_t batch) const {
    return batch * shared_.options.batch_size;
  }
  [[nodiscard]] std::int64_t batch_samples(std::int64_t batch) const {
    return std::min(shared_.options.batch_size, samples_ - batch_start(batch));
  }
  /// The place in the global order of this rank's sample number `index`.
  [[nodiscard]] std::uint64_t position(std::int64_t index) const {
    return static_cast<std::uint64_t>(index * request_.world + request_.rank);
  }
  [[nodiscard]] std::uint64_t id(std::int64_t index) const {
    return ids_[static_cast<std::size_t>(index)];
  }

  /// The rank's share of the global order, in the global order's memory.
  [[nodiscard]] std::vector<std::uint64_t> ids_of_rank() const {
    std::vector<std::uint64_t> ids = shared_.orders.take(request_.epoch);
    for (std::int64_t i = 0; i < samples_; ++i)
      ids[static_cast<std::size_t>(i)] = ids[static_cast<std::size_t>(position(i))];
    ids.resize(static_cast<std::size_t>(samples_));
    if (request_.world > 1) ids.shrink_to_fit();
    return ids;
  }

  /// Plans the rest of the pass and starts to read it.
  void start_reading() {
    std::vector<FileRange> ranges;
    const std::int64_t first = first_sample();
    for (std::int64_t i = first; i < samples_; ++i)
      ranges.push_back(range_of(shared_.reader, shared_.blob_fields, id(i)));
    const std::uint64_t page_bytes = shared_.reader.header().page_bytes;
    shared_.cache->begin(plan_extents(ranges, page_bytes, shared_.reader.header().table_offset,
                                      shared_.cache->plan_capacity_bytes(page_bytes)));
  }
  [[nodiscard]] std::int64_t first_sample() const {
    return std::min(samples_, batch_start(request_.first_batch));
  }

  void open_next_slot() {
    const std::int64_t batch = opened_;
    if (batch >= batches_) return;
    Slot& slot = slot_of(batch);
    slot.memory = shared_.pool.take();
    const auto first = ids_.begin() + batch_start(batch);
    slot.sample_ids.assign(first, first + batch_samples(batch));
    slot.remaining = batch_samples(batch);
    opened_ = batch + 1;
    opened_.notify_all();
  }

  void wait_until_full(Slot& slot) {
    if (slot.remaining <= 0) return;
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t left = slot.remaining; left > 0; left = slot.remaining) {
      slot.remaining.wait(left);
    }
    shared_.seconds_waited +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// Takes the batch out of its slot.
  HostBatch describe(Slot& slot) const {
    HostBatch described;
    described.sample_ids = std::move(slot.sample_ids);
    described.memory = slot.memory;
    described.fields =
        layout_.finish(slot.memory.get(), static_cast<std::int64_t>(described.sample_ids.size()));
    slot.memory = nullptr;
    return described;
  }

  void work(SampleReader& reader, WorkerClock& clock) {
    clock.start();
    const std::int64_t end = batches_ * runs_per_batch_;
    while (!stopping_) {
      const std::int64_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
      if (ticket >= end) break;
      const std::int64_t batch = ticket / runs_per_batch_;
      if (opened_ <= batch) {
        clock.end_busy();
        for (std::int64_t opened = opened_; opened <= batch; opened = opened_) opened_.wait(opened);
        clock.end_waiting();
      }
      if (stopping_) break;
      fill(reader, clock, batch, ticket % runs_per_batch_ * run_);
    }
    clock.end_busy();
  }

  /// One run: the batch's samples from `first` on.
  void fill(SampleReader& reader, WorkerClock& clock, std::int64_t batch, std::int64_t first) {
    const std::int64_t end = std::min(first + run_, batch_samples(batch));
    if (first >= end) return;
    Slot& slot = slot_of(batch);
    for (std::int64_t row = first; row < end; ++row) {
      const std::int64_t index = batch_start(batch) + row;
      try {
        failpoint("loader.before_sample");
        read_sample(reader, index, static_cast<std::size_t>(row), slot);
        clock.count(stored_bytes(shared_.reader, shared_.blob_fields, id(index)));
      } catch (...) {
        // The lowest sample's error wins, so that the message does not depend on the threads.
        const std::scoped_lock lock(slot.error_mutex);
        if (index < slot.error_index) {
          slot.error_index = index;
          slot.error = std::current_exception();
        }
      }
    }
    if (slot.remaining.fetch_sub(end - first) == end - first) slot.remaining.notify_one();
  }

  void read_sample(SampleReader& reader, std::int64_t index, std::size_t row, Slot& slot) {
    const SamplePlace place{
        .sample = id(index), .position = position(index), .epoch = request_.epoch};
    if (read_ahead_) read_ahead_->reach(index);
    if (!shared_.replacements) return read_planned(reader, place, index, row, slot);
    try {
      read_planned(reader, place, index, row, slot);
    } catch (const DataError& error) {
      SamplePlace other = place;
      other.sample = shared_.replacements->replace(place.sample, error.what());
      slot.sample_ids[row] = other.sample;
      DirectWindow window;
      reader.set_window(
          window.read(shared_.reader, range_of(shared_.reader, shared_.blob_fields, other.sample)));
      reader.read(other, layout_, row, slot.memory.get());
    }
  }

  /// The bytes come from the mapping, or from the page that is being held for this sample.
  void read_planned(SampleReader& reader, const SamplePlace& place, std::int64_t index,
                    std::size_t row, Slot& slot) {
    if (!shared_.cache) return reader.read(place, layout_, row, slot.memory.get());
    const auto planned = static_cast<std::size_t>(index - first_sample());
    const PageCache::Use pages(*shared_.cache, planned);
    if (stopping_) return;
    reader.set_window(pages.window());
    reader.read(place, layout_, row, slot.memory.get());
  }

  Shared& shared_;
  const EpochRequest request_;
  const std::int64_t samples_;
  const std::int64_t batches_;
  /// Of this rank, in order.
  const std::vector<std::uint64_t> ids_;
  const BatchLayout layout_;
  std::vector<Slot> slots_;
  /// For a mapped file.
  std::optional<ReadAhead> read_ahead_;
  /// Batches taken by the consumer; the consumer's alone.
  std::int64_t delivered_;
  /// Samples a ticket, and tickets a batch.
  const std::int64_t run_;
  const std::int64_t runs_per_batch_;
  /// Batches below this number have a slot with memory.
  alignas(64) std::atomic<std::int64_t> opened_{0};
  alignas(64) std::atomic<std::int64_t> next_ticket_{0};
  alignas(64) std::atomic<bool> stopping_{false};
  std::vector<std::jthread> workers_;
};

Loader::Loader(const BetonReader& reader, const Pipeline& pipeline, LoaderOptions options)
    : shared_(std::make_unique<Shared>(reader, pipeline, std::move(options))) {}

Loader::~Loader() = default;

void Loader::begin_epoch(const EpochRequest& request) {
  require(request.world > 0 && request.rank >= 0 && request.rank < request.world,
          "rank lies in world");
  require(request.image_size_px > 0, "images have a size");
  pass_.reset();
  auto pass = std::make_unique<Pass>(*shared_, request, samples(request.world, request.rank),
                                     batches(request.world, request.rank));
  pass->start();
  shared_->orders.prepare(request.epoch + 1);
  pass_ = std::move(pass);
}

std::optional<HostBatch> Loader::next() {
  return pass_ ? pass_->next() : std::nullopt;
}

bool Loader::ready() const {
  return !pass_ || pass_->ready();
}

std::int64_t Loader::batches(int world, int rank) const {
  const std::int64_t size = shared_->options.batch_size;
  return (samples(world, rank) + size - 1) / size;
}

std::int64_t Loader::samples(int world, int rank) const {
  const auto all = static_cast<std::int64_t>(shared_->order->size());
  if (shared_->options.drop_last) {
    // Every rank takes the steps that the shortest one can take.
    return all / world / shared_->options.batch_size * shared_->options.batch_size;
  }
  return (all - rank + world - 1) / world;
}

double Loader::seconds_waited() const {
  return shared_->seconds_waited;
}

SourceTimes Loader::times() const {
  const LoaderStatistics all = statistics();
  SourceTimes times{.disk = all.seconds_for_disk};
  double blocked = 0;
  for (const WorkerStatistics& worker : all.workers) {
    times.processing += worker.cpu;
    times.ahead += worker.waiting;
    blocked += worker.busy - worker.cpu;
  }
  times.blocked = std::max(0.0, blocked - times.disk);
  return times;
}

LoaderStatistics Loader::statistics() const {
  LoaderStatistics all;
  for (const WorkerClock& clock : shared_->clocks) {
    all.workers.push_back({clock.busy(), clock.waiting(), clock.cpu()});
    all.samples += clock.samples();
    all.stored_bytes += clock.stored_bytes();
  }
  if (shared_->replacements) all.replaced = shared_->replacements->list();
  if (const auto& cache = shared_->cache) {
    all.disk_bytes = cache->bytes_read();
    all.disk_waits = cache->waits();
    all.seconds_for_disk = cache->seconds_waited();
    all.cache_peak_bytes = cache->peak_bytes();
  }
  return all;
}

}  // namespace precast::data
