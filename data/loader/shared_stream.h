#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "framework/api/epoch_request.h"
#include "framework/core/error.h"

namespace precast::data {

/// Shares one stream of batches between several models in one process: each batch is decoded once
/// and delivered to all models in the same order. `T` is HostBatch for a Loader, or Batch for a
/// BatchSource. Copying a T must be cheap, and copies share their memory, so consumers must not
/// modify it.
///
/// The first consumer that needs the next batch requests it from the source, in the consumer's
/// thread. A batch is kept until the slowest consumer has taken it; the fastest consumer is at most
/// `capacity` batches ahead of the slowest. A consumer that leaves, or starts the next epoch early,
/// does not block the others. If the source throws, every consumer gets the exception once, at the
/// same batch, and the epoch is over.
template <typename T>
class SharedStream {
  struct State;

 public:
  struct Source {
    std::function<void(const EpochRequest&)> begin_epoch;
    std::function<std::optional<T>()> next;
  };

  /// One consumer's handle. Use it from one thread at a time. It may outlive the stream, but not
  /// the source.
  class Consumer {
   public:
    Consumer(Consumer&&) noexcept = default;
    Consumer& operator=(Consumer&&) = delete;
    /// Leaves the stream.
    ~Consumer() {
      if (state_) state_->leave(number_);
    }
    /// Waits until all remaining consumers have called this function, then starts the epoch.
    /// @throws ConfigError if their requests differ.
    void begin_epoch(const EpochRequest& request) { state_->begin_epoch(number_, request); }
    /// Returns the next batch, or nothing at the end of an epoch and before the first epoch.
    [[nodiscard]] std::optional<T> next() { return state_->next(number_); }

   private:
    friend class SharedStream;
    Consumer(std::shared_ptr<State> state, std::size_t number)
        : state_(std::move(state)), number_(number) {}
    std::shared_ptr<State> state_;
    std::size_t number_;
  };

  /// @param capacity the number of batches by which the fastest consumer may be ahead, at least 1.
  SharedStream(Source source, std::size_t consumers, std::size_t capacity)
      : state_(std::make_shared<State>(std::move(source), consumers, capacity)) {
    require(consumers > 0 && capacity > 0, "a stream has consumers and room");
  }

  /// Call once for each number from 0 to `consumers` - 1. A consumer that is never created blocks
  /// the others.
  [[nodiscard]] Consumer consumer(std::size_t number) { return {state_, number}; }

 private:
  struct Place {
    bool here = true;
    /// Whether the consumer waits for the next epoch.
    bool starting = false;
    bool told_error = false;
    /// Number of the batch that the consumer takes next.
    std::int64_t next = 0;
  };

  struct State {
    State(Source from, std::size_t consumers, std::size_t most)
        : source(std::move(from)), capacity(most), places(consumers) {}

    void begin_epoch(std::size_t number, const EpochRequest& wanted) {
      std::unique_lock lock(mutex);
      if (!anyone_starting()) request = wanted;
      if (request != wanted) {
        throw ConfigError(
            "shared stream: expected the same epoch and image size from all consumers, got "
            "different requests");
      }
      places[number].starting = true;
      drop_taken();
      const std::int64_t before = epochs;
      changed.wait(lock, [&] { return epochs != before || (all_starting() && !pulling); });
      if (epochs == before) start();
    }

    std::optional<T> next(std::size_t number) {
      std::unique_lock lock(mutex);
      Place& place = places[number];
      for (;;) {
        const auto ahead = static_cast<std::size_t>(place.next - first);
        if (ahead < ready.size()) {
          T batch = ready[ahead];
          ++place.next;
          drop_taken();
          return batch;
        }
        if (failure && !std::exchange(place.told_error, true)) std::rethrow_exception(failure);
        if (over) return std::nullopt;
        if (!pulling && ready.size() < capacity) {
          pull(lock);
        } else {
          changed.wait(lock);
        }
      }
    }

    void leave(std::size_t number) {
      const std::scoped_lock lock(mutex);
      places[number].here = false;
      drop_taken();
      changed.notify_all();
    }

   private:
    [[nodiscard]] bool anyone_starting() const {
      for (const Place& place : places)
        if (place.here && place.starting) return true;
      return false;
    }
    [[nodiscard]] bool all_starting() const {
      for (const Place& place : places)
        if (place.here && !place.starting) return false;
      return true;
    }

    void start() {
      ready.clear();
      first = 0;
      over = false;
      failure = nullptr;
      for (Place& place : places) place = {.here = place.here, .starting = false};
      try {
        source.begin_epoch(request);
      } catch (...) {
        failure = std::current_exception();
        over = true;
      }
      ++epochs;
      changed.notify_all();
    }

    /// Requests a batch from the source, with the lock released.
    void pull(std::unique_lock<std::mutex>& lock) {
      pulling = true;
      lock.unlock();
      std::optional<T> batch;
      std::exception_ptr error;
      try {
        batch = source.next();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      pulling = false;
      failure = error;
      over = !batch.has_value();
      if (batch) ready.push_back(std::move(*batch));
      drop_taken();
      changed.notify_all();
    }

    /// Drops the batches that every consumer has taken.
    void drop_taken() {
      std::int64_t slowest = first + static_cast<std::int64_t>(ready.size());
      for (const Place& place : places)
        if (place.here && !place.starting) slowest = std::min(slowest, place.next);
      if (slowest > first) changed.notify_all();
      for (; first < slowest; ++first) ready.pop_front();
    }

    const Source source;
    const std::size_t capacity;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Place> places;
    EpochRequest request;
    std::int64_t epochs = 0;
    /// Batches that some consumer has not taken yet; the first of them has the number `first`.
    std::deque<T> ready;
    std::int64_t first = 0;
    /// Whether a consumer is waiting for the source.
    bool pulling = false;
    bool over = true;
    std::exception_ptr failure;
  };

  std::shared_ptr<State> state_;
};

}  // namespace precast::data
