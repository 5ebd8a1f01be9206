#pragma once

#include <concepts>
#include <cstddef>
#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include "data/loader/host_batch.h"
#include "data/torch/look_ahead.h"
#include "framework/api/epoch_request.h"
#include "framework/core/log.h"

namespace precast::data {

/// A device with two streams: the copy stream, on which batches are copied, and the consumer's
/// stream, which is the current stream when a batch is returned. Only synchronize() and wait()
/// block the calling thread. cuda_batch_source.cpp implements it for GPUs; the tests use an
/// implementation that runs queued work late.
template <typename Device>
concept CopyDevice = requires(Device device, const HostBatch& host, typename Device::Batch& batch,
                              const typename Device::Event& event) {
  // Queues on the copy stream the work that turns `host` into a batch in device memory. Host memory
  // is read when that work runs, which may be long after the call.
  { device.copy(host) } -> std::same_as<typename Device::Batch>;
  // Records an event after everything queued on the copy stream. Copies of the result refer to the
  // same event.
  { device.record() } -> std::same_as<typename Device::Event>;
  // The seconds on the device between two events that have happened.
  { device.seconds(event, event) } -> std::same_as<double>;
  // Whether the event has happened.
  { device.query(event) } -> std::same_as<bool>;
  // Makes all work that is queued on the consumer's stream from now on wait for the event.
  device.block_consumer(event);
  // Keeps the memory of a released batch from being reused until the consumer's stream has finished
  // all work that was queued on it before the release.
  device.record_stream(batch);
  // Waits for everything queued on the copy stream.
  device.synchronize();
  // Records an event after everything queued on the consumer's stream.
  { device.record_consumer() } -> std::same_as<typename Device::Event>;
  // Waits for the event.
  device.wait(event);
};

/// Copies the batches of a source to a device, ahead of the one in use:
///   - host memory is returned to the source once the event recorded after its copy has completed;
///   - the consumer's stream, not the host, waits for that event;
///   - the device memory of a batch is not reused until the consumer's stream has finished with it;
///   - work on at most `max_in_use` returned batches is queued on the consumer's stream: next()
///     waits for the oldest. Without this limit, a host that queues steps faster than the device
///     runs them would fill the device's memory with batches.
/// `Source` is a Loader, or any type with the same begin_epoch(), next() and ready(). The host
/// waits for copies only in begin_epoch(), in the destructor, and before it calls next() of a
/// source whose member on_ring() returns true: that next() may wait until host memory is returned,
/// and would wait forever if the copies from this memory were not finished. Not thread-safe.
template <CopyDevice Device, typename Source>
class DevicePrefetcher {
 public:
  using Batch = typename Device::Batch;

  /// @param depth number of batches copied ahead of the one returned last.
  /// @param source arguments of the source's constructor.
  template <typename... SourceArguments>
  DevicePrefetcher(Device device, std::size_t depth, std::size_t max_in_use,
                   SourceArguments&&... source)
      : source_(std::forward<SourceArguments>(source)...),
        device_(std::move(device)),
        max_in_use_(max_in_use),
        ahead_(depth) {}
  DevicePrefetcher(const DevicePrefetcher&) = delete;
  DevicePrefetcher& operator=(const DevicePrefetcher&) = delete;
  ~DevicePrefetcher() {
    try {
      wait_for_copies();
    } catch (const std::exception& failure) {
      // Reached only if the device has failed, and the cause is already being reported.
      log_warning("loader: the last copies to the device failed: {}", failure.what());
    }
  }

  /// Starts a pass and cancels one that is still running. Batches already returned stay valid.
  void begin_epoch(const EpochRequest& request) {
    ahead_.restart();
    wait_for_copies();
    source_.begin_epoch(request);
  }

  /// Returns the next batch, or nothing at the end of the pass. Work that the caller queues on its
  /// current stream sees the batch complete; the batch may be released while such work is queued.
  /// `max_in_use` limits only work that is queued before the next call of next(). If the source or
  /// the copy of a batch fails, next() throws that exception after all earlier batches have been
  /// returned.
  [[nodiscard]] std::optional<Batch> next() {
    limit_in_use();
    release_copied();
    std::optional<Copied> copied =
        ahead_.next([this] { return copy_next(); }, [this] { return source_.ready(); });
    if (!copied) return std::nullopt;
    device_.block_consumer(copied->done);
    device_.record_stream(copied->batch);
    returned_ = true;
    return std::move(copied->batch);
  }

  [[nodiscard]] const Source& source() const { return source_; }
  /// The seconds that the copy stream has spent on batches whose host memory was returned.
  [[nodiscard]] double seconds_copying() const { return seconds_copying_; }

 private:
  using Event = typename Device::Event;
  struct Copied {
    Batch batch;
    Event done;
  };
  struct CopyInFlight {
    HostBatch host;
    Event start;
    /// Empty if the copy failed; a part of it may be queued nevertheless.
    std::optional<Event> done;
  };

  std::optional<Copied> copy_next() {
    if constexpr (requires { source_.on_ring(); }) {
      if (source_.on_ring() && !source_.ready()) wait_for_copies();
    }
    std::optional<HostBatch> host = source_.next();
    if (!host) return std::nullopt;
    CopyInFlight& copying = copies_in_flight_.emplace_back(
        CopyInFlight{std::move(*host), device_.record(), std::nullopt});
    Batch batch = device_.copy(copying.host);
    copying.done = device_.record();
    return Copied{std::move(batch), *copying.done};
  }

  void release_copied() {
    while (!copies_in_flight_.empty() && copies_in_flight_.front().done &&
           device_.query(*copies_in_flight_.front().done)) {
      count_time(copies_in_flight_.front());
      copies_in_flight_.pop_front();
    }
  }

  void limit_in_use() {
    if (!std::exchange(returned_, false)) return;
    in_use_.push_back(device_.record_consumer());
    if (in_use_.size() < max_in_use_) return;
    device_.wait(in_use_.front());
    in_use_.pop_front();
  }

  void count_time(const CopyInFlight& copied) {
    if (copied.done) seconds_copying_ += device_.seconds(copied.start, *copied.done);
  }

  void wait_for_copies() {
    if (copies_in_flight_.empty()) return;
    device_.synchronize();
    for (const CopyInFlight& copied : copies_in_flight_) count_time(copied);
    copies_in_flight_.clear();
  }

  Source source_;
  Device device_;
  std::size_t max_in_use_;
  /// Batches whose copies may still be running, oldest first. The newest copy may have failed.
  std::deque<CopyInFlight> copies_in_flight_;
  LookAhead<Copied> ahead_;
  /// Whether a batch was returned since the last call of limit_in_use().
  bool returned_ = false;
  /// For each of the batches returned last, oldest first: the event at the end of the consumer's
  /// work on it.
  std::deque<Event> in_use_;
  double seconds_copying_ = 0;
};

}  // namespace precast::data
