#include "data/loader/loader.h"

#include <algorithm>
#include <utility>

#include "data/loader/image_planner.h"
#include "data/loader/pass.h"
#include "framework/core/error.h"

namespace precast::data {

std::vector<Output> outputs_of_loader(const BetonReader& reader, const Pipeline& pipeline,
                                      const LoaderOptions& options) {
  std::vector<Output> outputs = resolve_outputs(reader, pipeline, options.normalize);
  if (options.plan_images) plan_images(reader, outputs);
  return outputs;
}

std::int64_t samples_of_pass(std::uint64_t samples, const LoaderOptions& options, int world,
                             int rank) {
  const auto all = static_cast<std::int64_t>(samples);
  if (options.drop_last) {
    // All ranks run the same number of steps: the number of complete batches of the rank with the
    // fewest samples.
    return all / world / options.batch_size * options.batch_size;
  }
  return (all - rank + world - 1) / world;
}

std::int64_t batches_of_pass(std::uint64_t samples, const LoaderOptions& options, int world,
                             int rank) {
  const std::int64_t size = options.batch_size;
  return (samples_of_pass(samples, options, world, rank) + size - 1) / size;
}

std::int64_t samples_of_batch(std::uint64_t samples, const LoaderOptions& options, int world,
                              int rank) {
  const std::int64_t pass = samples_of_pass(samples, options, world, rank);
  return std::max<std::int64_t>(1, std::min(pass, options.batch_size));
}

Loader::Loader(const BetonReader& reader, const Pipeline& pipeline, LoaderOptions options)
    : shared_(std::make_unique<Shared>(reader, pipeline, std::move(options))) {}

Loader::~Loader() = default;

void Loader::begin_epoch(const EpochRequest& request) {
  require(request.world > 0 && request.rank >= 0 && request.rank < request.world,
          "the rank is from 0 to world - 1");
  require(request.image_size_px > 0, "the image size is above 0");
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

bool Loader::wait_for(std::chrono::milliseconds limit) {
  return !pass_ || pass_->wait_for(limit);
}

std::int64_t Loader::batches(int world, int rank) const {
  return batches_of_pass(shared_->order->size(), shared_->options, world, rank);
}

std::int64_t Loader::samples(int world, int rank) const {
  return samples_of_pass(shared_->order->size(), shared_->options, world, rank);
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
