#include "data/ring/shared_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/beton/reader.h"
#include "data/ring/ring_error.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::data {
namespace {

/// Pause between two attempts to join a ring that has passed the position, does not exist or has
/// ended.
constexpr std::chrono::milliseconds kRetryInterval{100};
/// If an attempt fails after more than this time, the producer does not respond: no further attempt
/// is made in the pass.
constexpr std::chrono::seconds kSlowFailure{5};

void add(SourceTimes& sum, const SourceTimes& times) {
  sum.processing += times.processing;
  sum.disk += times.disk;
  sum.blocked += times.blocked;
  sum.ahead += times.ahead;
}

/// Returns the entries of both lists, sorted by sample. Entries of the same sample become one.
std::vector<ReplacedSample> merged(std::vector<ReplacedSample> past,
                                   const std::vector<ReplacedSample>& more) {
  for (const ReplacedSample& entry : more) {
    const auto known = std::ranges::find(past, entry.sample, &ReplacedSample::sample);
    if (known == past.end())
      past.push_back(entry);
    else
      known->times += entry.times;
  }
  std::ranges::sort(past, {}, &ReplacedSample::sample);
  return past;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

SharedLoader::SharedLoader(const BetonReader& reader, Pipeline pipeline, LoaderOptions options,
                           SharedRing ring)
    : reader_(reader),
      pipeline_(std::move(pipeline)),
      options_(std::move(options)),
      ring_(std::move(ring)),
      order_samples_(options_.order ? options_.order->size() : reader.size()) {
  if (ring_.name.empty())
    static_cast<void>(private_loader());
  else
    outputs_ = outputs_of_loader(reader_, pipeline_, options_);
}

SharedLoader::~SharedLoader() = default;

std::int64_t SharedLoader::batches(int world, int rank) const {
  return batches_of_pass(order_samples_, options_, world, rank);
}

std::int64_t SharedLoader::samples(int world, int rank) const {
  return samples_of_pass(order_samples_, options_, world, rank);
}

Loader& SharedLoader::private_loader() {
  if (!loader_) loader_ = std::make_unique<Loader>(reader_, pipeline_, options_);
  return *loader_;
}

void SharedLoader::drop_private_loader() {
  if (!loader_) return;
  add(past_times_, loader_->times());
  past_seconds_ += loader_->seconds_waited();
  past_replaced_ = merged(std::move(past_replaced_), loader_->statistics().replaced);
  loader_.reset();
  loading_ = false;
}

SourceTimes SharedLoader::times() const {
  SourceTimes all = past_times_;
  if (loader_) add(all, loader_->times());
  return all;
}

double SharedLoader::seconds_waited() const {
  return past_seconds_ + ring_seconds_ + (loader_ ? loader_->seconds_waited() : 0);
}

std::vector<ReplacedSample> SharedLoader::replaced() const {
  return loader_ ? merged(past_replaced_, loader_->statistics().replaced) : past_replaced_;
}

void SharedLoader::begin_epoch(const EpochRequest& request) {
  request_ = request;
  position_ = {.epoch = request.epoch, .batch = request.first_batch};
  end_ = batches(request.world, request.rank);
  on_ring_ = false;
  loading_ = false;
  if (!ring_.name.empty()) {
    require(request.world == 1, "a ring has the batches of one rank");
    layout_.emplace(outputs_, options_.batch_size, request.image_size_px);
    if (join() || position_.batch >= end_) return;
  }
  load_privately();
}

void SharedLoader::load_privately() {
  EpochRequest rest = request_;
  rest.first_batch = position_.batch;
  private_loader().begin_epoch(rest);
  loading_ = true;
}

bool SharedLoader::ready() {
  if (!on_ring_) return !loading_ || loader_->ready();
  try {
    return consumer_->ready();
  } catch (const Error&) {
    return true;  // next() handles the same error
  }
}

std::optional<HostBatch> SharedLoader::next() {
  if (!ring_.name.empty() && !on_ring_ && position_.batch < end_ && Clock::now() >= next_try_)
    join();
  if (on_ring_) {
    if (auto batch = next_from_ring()) return batch;
    if (on_ring_) return std::nullopt;
  }
  if (!loading_) {
    if (position_.batch >= end_) return std::nullopt;
    load_privately();
  }
  std::optional<HostBatch> batch = loader_->next();
  if (batch) ++position_.batch;
  return batch;
}

/// Waits for the next batch of the ring. @return nothing at the end of the pass, and if the loader
/// has left the ring.
std::optional<HostBatch> SharedLoader::next_from_ring() {
  const auto start = waiting_since_ = Clock::now();
  std::optional<HostBatch> batch;
  try {
    batch = consumer_->next();
    if (batch) check(*batch);
  } catch (const Error& error) {
    batch.reset();
    leave(error.what());
  }
  ring_seconds_ += seconds_since(start);
  if (!on_ring_) return std::nullopt;
  consumer_position_ = position_;
  if (batch) {
    samples_shared_ += static_cast<std::int64_t>(batch->sample_ids.size());
    ++position_.batch;
    return batch;
  }
  // The consumer was asked to stop, or the ring's pass is shorter.
  if (position_.batch < end_) {
    check_timeout();
    leave(nullptr);
  }
  return std::nullopt;
}

bool SharedLoader::join() {
  if (incompatible_ || position_.batch >= end_ || position_.epoch == private_epoch_) return false;
  const auto start = waiting_since_ = Clock::now();
  next_try_ = start + kRetryInterval;
  try {
    // Continue with the next pass of the current consumer, if there is one.
    if (consumer_ && position_ > consumer_position_)
      on_ring_ = consumer_->begin_pass() == position_;
    if (!on_ring_) {
      consumer_.reset();
      on_ring_ = !check_timeout() && attach();
    }
  } catch (const RingError& error) {
    if (stopped() || check_timeout()) {
      leave(nullptr);
    } else if (error.exit_code() == ExitCode::usage) {
      // The ring has passed the position.
      consumer_.reset();
      if (!std::exchange(passed_logged_, true))
        log_info("=> this run loads its batches itself until it catches up with ring '{}' ({})",
                 ring_.name, without_ring_prefix(error.what()));
    } else {
      if (dynamic_cast<const RingRefusal*>(&error) != nullptr) private_epoch_ = position_.epoch;
      leave(error.what());
    }
  } catch (const Error& error) {
    leave(error.what());
  }
  ring_seconds_ += seconds_since(start);
  next_try_ = Clock::now() + kRetryInterval;
  if (!on_ring_ && Clock::now() - start > kSlowFailure) private_epoch_ = position_.epoch;
  if (!on_ring_) return false;
  drop_private_loader();
  consumer_position_ = position_;
  return true;
}

bool SharedLoader::attach() {
  RingConsumerOptions options = ring_.options;
  options.stopped = [this] { return stopped() || Clock::now() - waiting_since_ > ring_.timeout; };
  auto consumer = std::make_unique<RingConsumer>(
      ring_.name, RingJoin{.mode = RingJoin::Mode::position, .position = position_},
      std::move(options));
  if (consumer->description() != ring_.description) {
    incompatible_ = true;
    log_warning(
        "ring: expected '{}' to load the same batches as this run, got different batches. This "
        "run loads its batches itself",
        ring_.name);
    return false;
  }
  passed_logged_ = false;
  if (!consumer->begin_pass()) {
    check_timeout();
    return false;
  }
  log_info("=> from epoch {}, batch {} on, batches come from ring '{}'", position_.epoch,
           position_.batch, ring_.name);
  consumer_ = std::move(consumer);
  return true;
}

bool SharedLoader::check_timeout() {
  if (Clock::now() - waiting_since_ <= ring_.timeout) return false;
  private_epoch_ = position_.epoch;
  log_info(
      "=> waited {} s for epoch {}, batch {} of ring '{}'. This run loads the rest of the epoch "
      "itself",
      std::chrono::floor<std::chrono::seconds>(ring_.timeout).count(), position_.epoch,
      position_.batch, ring_.name);
  return true;
}

/// Leaves the ring. @param reason reported in a warning, once per run; null: no warning.
void SharedLoader::leave(const char* reason) {
  on_ring_ = false;
  consumer_.reset();
  if (reason != nullptr && !std::exchange(warned_, true))
    log_warning("ring '{}': {}. This run loads its batches itself; results do not change",
                ring_.name, without_ring_prefix(reason));
}

void SharedLoader::check(const HostBatch& batch) {
  const std::int64_t samples =
      std::min(options_.batch_size, samples_of_pass(order_samples_, options_, 1, 0) -
                                        position_.batch * options_.batch_size);
  bool same = static_cast<std::int64_t>(batch.sample_ids.size()) == samples &&
              batch.fields.size() == outputs_.size();
  for (std::size_t i = 0; same && i < outputs_.size(); ++i) {
    const HostTensor& field = batch.fields[i];
    std::vector<std::int64_t> shape = layout_->fields()[i].shape;
    shape.insert(shape.begin(), samples);
    same = field.name == outputs_[i].name && field.type == outputs_[i].type &&
           (is_packed(outputs_[i]) ? field.shape.size() == 2 : field.shape == shape);
  }
  if (same) return;
  incompatible_ = true;
  throw RingError(
      fmt::format("ring: expected {} with the samples and outputs of this run's pipeline, got a "
                  "different number of samples or other outputs",
                  text_of(position_)));
}

}  // namespace precast::data
