#include "data/loader/batch_ring.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace precast::data {

void BatchSlot::fail(std::int64_t index) {
  const std::scoped_lock lock(mutex_);
  if (index >= error_index_) return;
  error_index_ = index;
  error_ = std::current_exception();
}

void BatchSlot::finish(std::int64_t count) {
  if (remaining_.fetch_sub(count) != count) return;
  const std::scoped_lock lock(mutex_);
  full_.notify_one();
}

bool BatchSlot::wait_until_full(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return full_.wait_until(lock, deadline, [this] { return remaining_ <= 0; });
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

bool BatchRing::wait(std::chrono::steady_clock::time_point deadline, double& seconds_waited) {
  if (ready()) return true;
  const auto start = std::chrono::steady_clock::now();
  const bool full = slot(delivered_).wait_until_full(deadline);
  seconds_waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return full;
}

std::optional<BatchRing::Filled> BatchRing::take(double& seconds_waited) {
  if (delivered_ >= batches_ || stopping_) return std::nullopt;
  wait(std::chrono::steady_clock::time_point::max(), seconds_waited);
  BatchSlot& full = slot(delivered_);
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
