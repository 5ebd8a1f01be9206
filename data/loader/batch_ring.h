#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "data/loader/buffer_pool.h"

namespace precast::data {

/// One batch that is being filled. Slots do not share cache lines.
class BatchSlot {
 public:
  /// For workers: the batch's memory, and the sample id of each row. While the batch is filled,
  /// only one worker accesses a row and its id. @{
  [[nodiscard]] std::byte* memory() const { return memory_.get(); }
  void set_sample(std::size_t row, std::uint64_t sample) { sample_ids_[row] = sample; }
  /// @}
  /// Records the exception that is being handled. If several samples fail, only the exception of
  /// the sample with the lowest index is kept, so that the message does not depend on the timing of
  /// the threads. @param index the sample's index in the pass.
  void fail(std::int64_t index);
  /// Whether a sample before `index` has failed. If so, the sample at `index` need not be read: its
  /// batch will not be returned, and its exception would be dropped.
  [[nodiscard]] bool failed_before(std::int64_t index) const {
    return error_index_.load(std::memory_order_relaxed) < index;
  }
  /// Reports that `count` more samples are filled, have failed or need not be read.
  void finish(std::int64_t count);
  /// Waits until finish() has reported all samples of the batch, or until `deadline`. @return false
  /// if the deadline passed first.
  bool wait_until_full(std::chrono::steady_clock::time_point deadline);

 private:
  friend class BatchRing;

  alignas(64) std::atomic<std::int64_t> remaining_{0};
  std::shared_ptr<std::byte> memory_;
  /// Protects changes of the error, and is used to wait for `full_`.
  std::mutex mutex_;
  std::condition_variable full_;
  std::atomic<std::int64_t> error_index_{std::numeric_limits<std::int64_t>::max()};
  std::exception_ptr error_;
  std::vector<std::uint64_t> sample_ids_;
};

/// The batches of one pass that are being filled or are waiting for the consumer. Batch b is filled
/// in slot b % slots. take() removes a full batch from its slot, and opens the slot for batch b +
/// slots with a different buffer. A consumer that keeps batches therefore uses more memory, but
/// does not block the workers.
class BatchRing {
 public:
  /// Keeps references to `pool` and the memory of `ids`. @param batch_bytes memory per batch.
  /// @param ids the samples of the pass in order.
  BatchRing(BufferPool& pool, std::size_t batch_bytes, std::span<const std::uint64_t> ids,
            std::int64_t batch_size, std::int64_t first_batch, int slots);

  /// Number of samples in the batches before `batch`, and in `batch` itself.
  [[nodiscard]] std::int64_t start_of(std::int64_t batch) const { return batch * batch_size_; }
  [[nodiscard]] std::int64_t samples_of(std::int64_t batch) const;

  /// For workers: a batch may be filled once it is open. After stop(), all batches count as open.
  /// @{
  [[nodiscard]] bool is_open(std::int64_t batch) const { return opened_ > batch; }
  void wait_until_open(std::int64_t batch) const;
  [[nodiscard]] BatchSlot& slot(std::int64_t batch);
  /// @}

  /// For the consumer's thread. @{
  struct Filled {
    std::shared_ptr<std::byte> memory;
    /// The sample id of each row.
    std::vector<std::uint64_t> sample_ids;
  };
  /// Whether take() would return without waiting.
  [[nodiscard]] bool ready();
  /// Waits until ready() or until `deadline`. @param seconds_waited grows by the time spent
  /// waiting. @return ready().
  bool wait(std::chrono::steady_clock::time_point deadline, double& seconds_waited);
  /// Waits until the next batch is full, and returns it; returns nothing at the end of the pass and
  /// after stop().
  /// @param seconds_waited grows by the time spent waiting. @throws the error of a sample in the
  /// batch; this ends the pass.
  std::optional<Filled> take(double& seconds_waited);
  /// Ends the pass: wakes the waiting workers.
  void stop();
  /// @}
  [[nodiscard]] bool stopping() const { return stopping_; }

 private:
  void open_next();

  BufferPool& pool_;
  std::span<const std::uint64_t> ids_;
  std::int64_t batch_size_;
  std::int64_t batches_;
  std::vector<BatchSlot> slots_;
  /// The batch that the consumer takes next. Only the consumer's thread uses this member.
  std::int64_t delivered_;
  /// Batches below this number have been opened.
  alignas(64) std::atomic<std::int64_t> opened_;
  alignas(64) std::atomic<bool> stopping_{false};
};

}  // namespace precast::data
