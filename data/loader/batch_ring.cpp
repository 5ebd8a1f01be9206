#include "data/loader/batch_ring.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace precast::data {
namespace {

/// @return seconds.
double wait_until_full(const std::atomic<std::int64_t>& remaining) {
  if (remaining <= 0) return 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t left = remaining; left > 0; left = remaining) remaining.wait(left);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void BatchSlot::fail(std::int64_t index) {
  const std::scoped_lock lock(error_mutex_);
  if (index >= error_index_) return;
  error_index_ = index;
  error_ = std::current_exception();
}

void BatchSlot::finish(std::int64_t count) {
  if (remaining_.fetch_sub(count) == count) remaining_.notify_one();
}

BatchRing::BatchRing(BufferPool& pool, std::size_t batch_bytes, std::span<const std::uint64_t> ids,
                     std::int64_t batch_size, std::int64_t first_batch, int slots)
    : pool_(pool),
      ids_(ids),
      batch_size_(batch_size),
      batches_((static_cast<std::int64_t>(ids.size()) + batch_size - 1) / batch_size),
      slots_(static_cast<std::size_t>(slots)),
      delivered_(first_batch),
      opened_(first_batch) {
  pool.set_size(batch_bytes);
  for (int slot = 0; slot < slots; ++slot) open_next();
}

std::int64_t BatchRing::samples_of(std::int64_t batch) const {
  return std::min(batch_size_, static_cast<std::int64_t>(ids_.size()) - start_of(batch));
}

BatchSlot& BatchRing::slot(std::int64_t batch) {
  return slots_[static_cast<std::size_t>(batch) % slots_.size()];
}

void BatchRing::wait_until_open(std::int64_t batch) const {
  for (std::int64_t opened = opened_; opened <= batch; opened = opened_) opened_.wait(opened);
}

void BatchRing::open_next() {
  const std::int64_t batch = opened_;
  if (batch >= batches_) return;
  BatchSlot& next = slot(batch);
  next.memory_ = pool_.take();
  const auto first = ids_.begin() + start_of(batch);
  next.sample_ids_.assign(first, first + samples_of(batch));
  next.remaining_ = samples_of(batch);
  opened_ = batch + 1;
  opened_.notify_all();
}

bool BatchRing::ready() {
  return delivered_ >= batches_ || stopping_ || slot(delivered_).remaining_ <= 0;
}

std::optional<BatchRing::Filled> BatchRing::take(double& seconds_waited) {
  if (delivered_ >= batches_ || stopping_) return std::nullopt;
  BatchSlot& full = slot(delivered_);
  seconds_waited += wait_until_full(full.remaining_);
  if (full.error_) {
    stopping_ = true;
    std::rethrow_exception(full.error_);
  }
  Filled filled{.memory = std::move(full.memory_), .sample_ids = std::move(full.sample_ids_)};
  ++delivered_;
  open_next();
  return filled;
}

void BatchRing::stop() {
  stopping_ = true;
  opened_ = std::numeric_limits<std::int64_t>::max();
  opened_.notify_all();
}

}  // namespace precast::data
