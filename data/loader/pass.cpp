#include "data/loader/pass.h"

#include <fmt/core.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

#include "data/cache/extent_plan.h"
#include "data/loader/sample_bytes.h"
#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/core/system.h"

namespace precast::data {
namespace {

/// The maximum number of samples per ticket, which is reached if batches are large. With several
/// samples per ticket, the counter that all workers share does not slow down samples that decode
/// quickly (40 us).
constexpr std::int64_t kMaxRunSamples = 8;

/// Pause between two calls of LoaderOptions::stopped.
constexpr std::chrono::milliseconds kPollInterval{100};

std::int64_t run_length(const LoaderOptions& options) {
  return std::clamp<std::int64_t>(options.batch_size / (4 * std::int64_t{options.workers}), 1,
                                  kMaxRunSamples);
}

/// Whether the batches in use at the same time are larger than the last-level cache. With ordinary
/// stores, each cache line would then be read from memory before it is written, and evicted before
/// the consumer reads it.
bool exceeds_cache(const BatchLayout& layout, const LoaderOptions& options) {
  static const std::uint64_t kCache = last_level_cache_bytes();
  return kCache > 0 &&
         layout.bytes() * static_cast<std::uint64_t>(options.batches_ahead + 1) > kCache;
}

}  // namespace

Loader::Shared::Shared(const BetonReader& beton, const Pipeline& pipeline,
                       LoaderOptions loader_options)
    : reader(beton),
      options(std::move(loader_options)),
      outputs(outputs_of_loader(beton, pipeline, options)),
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
          "the JPEG index has the file's number of samples");
  if (reader.disk() != nullptr)
    cache.emplace(*reader.disk(), PageCacheOptions{.budget_bytes = options.cache_bytes});
}

Loader::Pass::Pass(Shared& shared, const EpochRequest& request, std::int64_t samples,
                   std::int64_t batches)
    : shared_(shared),
      request_(request),
      samples_(samples),
      batches_(batches),
      ids_(ids_of_rank()),
      layout_(shared.outputs,
              samples_of_batch(shared.order->size(), shared.options, request.world, request.rank),
              request.image_size_px),
      ring_(shared.pool, layout_.bytes(), ids_, shared.options.batch_size, request.first_batch,
            shared.options.batches_ahead),
      run_(run_length(shared.options)),
      runs_per_batch_((shared.options.batch_size + run_ - 1) / run_),
      next_ticket_(request.first_batch * runs_per_batch_) {
  layout_.set_streamed(exceeds_cache(layout_, shared.options));
  if (const MappedFiles* mapped = shared.reader.mapping())
    read_ahead_.emplace(
        *mapped,
        [this](std::int64_t i) { return ranges_of(shared_.reader, shared_.blob_fields, id(i)); },
        first_sample(), samples);
}

Loader::Pass::~Pass() {
  ring_.stop();
  if (shared_.cache) shared_.cache->interrupt();
  if (fetch_ahead_) fetch_ahead_->interrupt();
  workers_.clear();
  if (shared_.cache) shared_.cache->end();
}

void Loader::Pass::start() {
  if (shared_.cache) start_reading();
  if (!shared_.reader.remotes().empty()) {
    fetch_ahead_.emplace(shared_.reader, shared_.blob_fields,
                         std::span(ids_).subspan(static_cast<std::size_t>(first_sample())));
  }
  workers_.reserve(shared_.readers.size());
  try {
    for (std::size_t w = 0; w < shared_.readers.size(); ++w)
      workers_.emplace_back([this, w] { work(shared_.readers[w], shared_.clocks[w]); });
  } catch (const std::system_error& error) {
    throw DeviceError(
        fmt::format("loader: cannot start worker {} of {}: {}. Use fewer workers, or allow more "
                    "processes (ulimit -u)",
                    workers_.size() + 1, shared_.readers.size(), error.code().message()));
  }
}

std::optional<HostBatch> Loader::Pass::next() {
  while (shared_.options.stopped && !wait_for(kPollInterval)) {
    if (shared_.options.stopped()) return std::nullopt;
  }
  std::optional<BatchRing::Filled> filled = ring_.take(shared_.seconds_waited);
  if (!filled) return std::nullopt;
  HostBatch batch;
  batch.fields =
      layout_.finish(filled->memory.get(), static_cast<std::int64_t>(filled->sample_ids.size()));
  batch.sample_ids = std::move(filled->sample_ids);
  batch.memory = std::move(filled->memory);
  return batch;
}

std::int64_t Loader::Pass::first_sample() const {
  return std::min(samples_, request_.first_batch * shared_.options.batch_size);
}

/// The rank's share of the global order. Reuses the memory of the global order.
std::vector<std::uint64_t> Loader::Pass::ids_of_rank() const {
  std::vector<std::uint64_t> ids = shared_.orders.take(request_.epoch);
  for (std::int64_t i = 0; i < samples_; ++i)
    ids[static_cast<std::size_t>(i)] = ids[static_cast<std::size_t>(position(i))];
  ids.resize(static_cast<std::size_t>(samples_));
  if (request_.world > 1) ids.shrink_to_fit();
  return ids;
}

void Loader::Pass::start_reading() {
  std::vector<FileRange> ranges;
  const std::int64_t first = first_sample();
  for (std::int64_t i = first; i < samples_; ++i)
    ranges.push_back(range_of(shared_.reader, shared_.blob_fields, id(i)));
  const std::uint64_t page_bytes = shared_.reader.header().page_bytes;
  shared_.cache->begin(plan_extents(ranges, page_bytes, shared_.reader.header().table_offset,
                                    shared_.cache->plan_capacity_bytes(page_bytes)));
}

void Loader::Pass::work(SampleReader& reader, WorkerClock& clock) {
  clock.start();
  const std::int64_t end = batches_ * runs_per_batch_;
  while (!ring_.stopping()) {
    const std::int64_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
    if (ticket >= end) break;
    const std::int64_t batch = ticket / runs_per_batch_;
    if (!ring_.is_open(batch)) {
      clock.end_busy();
      ring_.wait_until_open(batch);
      clock.end_waiting();
    }
    if (ring_.stopping()) break;
    fill(reader, clock, batch, ticket % runs_per_batch_ * run_);
  }
  clock.end_busy();
}

void Loader::Pass::fill(SampleReader& reader, WorkerClock& clock, std::int64_t batch,
                        std::int64_t first) {
  const std::int64_t end = std::min(first + run_, ring_.samples_of(batch));
  if (first >= end) return;
  BatchSlot& slot = ring_.slot(batch);
  for (std::int64_t row = first; row < end; ++row) {
    const std::int64_t index = ring_.start_of(batch) + row;
    // After a failure, the later samples are skipped: a failing read may take until its timeout,
    // and more timeouts would delay the report of the error.
    if (slot.failed_before(index)) break;
    try {
      failpoint("loader.before_sample");
      const std::uint64_t sample = read_sample(reader, index, static_cast<std::size_t>(row), slot);
      clock.count(stored_bytes(shared_.reader, shared_.blob_fields, sample));
    } catch (...) {
      slot.fail(index);
    }
  }
  // Without this fence, non-temporal stores might become visible after the counter of finished
  // samples.
  if (layout_.streamed()) hwy::FlushStream();
  slot.finish(end - first);
}

std::uint64_t Loader::Pass::read_sample(SampleReader& reader, std::int64_t index, std::size_t row,
                                        BatchSlot& slot) {
  const SampleKey key{.sample = id(index), .position = position(index), .epoch = request_.epoch};
  if (read_ahead_) read_ahead_->advance_to(index);
  if (fetch_ahead_) fetch_ahead_->advance_to(index - first_sample());
  try {
    read_planned(reader, key, index, row, slot);
    return key.sample;
  } catch (const DataError& error) {
    if (!shared_.replacements) throw;
    SampleKey other = key;
    other.sample = shared_.replacements->replace(key.sample, error.what());
    slot.set_sample(row, other.sample);
    DirectWindow window;
    reader.set_window(
        window.read(shared_.reader, range_of(shared_.reader, shared_.blob_fields, other.sample)));
    reader.read(other, layout_, row, slot.memory());
    return other.sample;
  }
}

void Loader::Pass::read_planned(SampleReader& reader, const SampleKey& key, std::int64_t index,
                                std::size_t row, const BatchSlot& slot) {
  if (!shared_.cache) return reader.read(key, layout_, row, slot.memory());
  const auto planned = static_cast<std::size_t>(index - first_sample());
  const PageCache::Use pages(*shared_.cache, planned);
  if (ring_.stopping()) return;
  reader.set_window(pages.window());
  reader.read(key, layout_, row, slot.memory());
}

}  // namespace precast::data
