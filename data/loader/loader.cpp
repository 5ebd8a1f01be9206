#include "data/loader/loader.h"

#include <algorithm>
#include <utility>

#include "data/loader/pass.h"
#include "framework/core/error.h"

namespace precast::data {

Loader::Loader(const BetonReader& reader, const Pipeline& pipeline, LoaderOptions options)
    : shared_(std::make_unique<Shared>(reader, pipeline, std::move(options))) {}

Loader::~Loader() = default;

void Loader::begin_epoch(const EpochRequest& request) {
  require(request.world > 0 && request.rank >= 0 && request.rank < request.world,
          "a rank is below world");
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
    // Every rank takes the number of steps that the shortest one can take.
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
  for (const RemoteFile* const remote : shared_->reader.remotes()) {
    all.disk_bytes += remote->bytes_received();
    all.disk_waits += remote->waits();
    all.seconds_for_disk += remote->seconds_waited();
  }
  return all;
}

}  // namespace precast::data
