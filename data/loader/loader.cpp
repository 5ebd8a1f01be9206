#include "data/loader/loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "data/beton/reader.h"
#include "data/loader/batch_layout.h"
#include "data/loader/sample_reader.h"
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
};

}  // namespace

/// What stays the same over all passes.
struct Loader::Shared {
  Shared(const BetonReader& beton, const Pipeline& pipeline, LoaderOptions loader_options)
      : reader(beton),
        options(std::move(loader_options)),
        outputs(resolve_outputs(beton, pipeline, options.normalize)),
        pool(options.allocator.allocate ? options.allocator : heap_allocator()) {
    if (options.batch_size < 1 || options.workers < 1 || options.batches_ahead < 1) {
      throw ConfigError(
          fmt::format("loader: expected batch_size, workers and batches_ahead >= 1, got {}, {}, {}",
                      options.batch_size, options.workers, options.batches_ahead));
    }
    for (int w = 0; w < options.workers; ++w) readers.emplace_back(reader, outputs, options.seed);
  }

  const BetonReader& reader;
  const LoaderOptions options;
  const std::vector<Output> outputs;
  BufferPool pool;
  /// One a worker, kept over passes for their scratch memory.
  std::vector<SampleReader> readers;
  double seconds_waited = 0;
};

/// One pass. start() starts the workers, the destructor stops and joins them.
///
/// Batch b is filled in slot b % batches_ahead. Workers draw tickets (the pass's samples in order)
/// from one counter and wait while their sample's batch is not yet open; next() takes the finished
/// batch out of its slot and opens the slot for batch b + batches_ahead with other memory. So a
/// consumer that keeps batches costs memory and never a stall.
class Loader::Pass {
 public:
  Pass(Shared& shared, const EpochRequest& request, std::int64_t samples, std::int64_t batches)
      : shared_(shared),
        request_(request),
        samples_(samples),
        batches_(batches),
        order_(make_order(shared.options.order, shared.reader.size(), shared.options.seed,
                          request.epoch)),
        layout_(shared.outputs, shared.options.batch_size, request.image_size_px),
        slots_(static_cast<std::size_t>(shared.options.batches_ahead)),
        delivered_(request.first_batch) {
    shared.pool.set_size(layout_.bytes());
    next_ticket_ = request.first_batch * shared.options.batch_size;
    opened_ = request.first_batch;
    for (int slot = 0; slot < shared.options.batches_ahead; ++slot) open_next_slot();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  ~Pass() {
    stopping_ = true;
    opened_ = std::numeric_limits<std::int64_t>::max();
    opened_.notify_all();
    workers_.clear();
  }

  /// Not in the constructor: when a thread cannot be started, only the destructor of a complete
  /// object ends those that run already. @throws DeviceError
  void start() {
    workers_.reserve(shared_.readers.size());
    try {
      for (SampleReader& reader : shared_.readers) {
        workers_.emplace_back([this, &reader] { work(reader); });
      }
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
    HostBatch batch = describe(delivered_, std::exchange(slot.memory, nullptr));
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

  void open_next_slot() {
    const std::int64_t batch = opened_;
    if (batch >= batches_) return;
    Slot& slot = slot_of(batch);
    slot.memory = shared_.pool.take();
    slot.remaining = batch_samples(batch);
    opened_ = batch + 1;
    opened_.notify_all();
  }

  void wait_until_full(Slot& slot) {
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t left = slot.remaining; left > 0; left = slot.remaining) {
      slot.remaining.wait(left);
    }
    shared_.seconds_waited +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  HostBatch describe(std::int64_t batch, std::shared_ptr<std::byte> memory) const {
    HostBatch described;
    const std::int64_t count = batch_samples(batch);
    described.fields = layout_.describe(memory.get(), count);
    for (std::int64_t i = 0; i < count; ++i) {
      described.sample_ids.push_back(order_[position(batch_start(batch) + i)]);
    }
    described.memory = std::move(memory);
    return described;
  }

  void work(SampleReader& reader) {
    const std::int64_t end = std::min(samples_, batch_start(batches_));
    while (!stopping_) {
      const std::int64_t ticket = next_ticket_.fetch_add(1);
      if (ticket >= end) return;
      const std::int64_t batch = ticket / shared_.options.batch_size;
      for (std::int64_t opened = opened_; opened <= batch; opened = opened_) opened_.wait(opened);
      if (stopping_) return;
      fill(reader, ticket, slot_of(batch));
    }
  }

  void fill(SampleReader& reader, std::int64_t ticket, Slot& slot) {
    try {
      failpoint("loader.before_sample");
      read_sample(reader, ticket, slot.memory.get());
    } catch (...) {
      // The lowest sample's error wins, so that the message does not depend on the threads.
      const std::scoped_lock lock(slot.error_mutex);
      if (ticket < slot.error_index) {
        slot.error_index = ticket;
        slot.error = std::current_exception();
      }
    }
    if (slot.remaining.fetch_sub(1) == 1) slot.remaining.notify_one();
  }

  void read_sample(SampleReader& reader, std::int64_t ticket, std::byte* memory) {
    const SamplePlace place{
        .sample = order_[position(ticket)], .position = position(ticket), .epoch = request_.epoch};
    reader.read(place, layout_, static_cast<std::size_t>(ticket % shared_.options.batch_size),
                memory);
  }

  Shared& shared_;
  const EpochRequest request_;
  const std::int64_t samples_;
  const std::int64_t batches_;
  const std::vector<std::uint64_t> order_;
  const BatchLayout layout_;
  std::vector<Slot> slots_;
  /// Batches taken by the consumer; the consumer's alone.
  std::int64_t delivered_;
  /// Batches below this number have a slot with memory.
  alignas(64) std::atomic<std::int64_t> opened_{0};
  alignas(64) std::atomic<std::int64_t> next_ticket_{0};
  std::atomic<bool> stopping_{false};
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
  const auto all = static_cast<std::int64_t>(shared_->reader.size());
  if (shared_->options.drop_last) {
    // Every rank takes the steps that the shortest one can take.
    return all / world / shared_->options.batch_size * shared_->options.batch_size;
  }
  return (all - rank + world - 1) / world;
}

double Loader::seconds_waited() const {
  return shared_->seconds_waited;
}

}  // namespace precast::data
