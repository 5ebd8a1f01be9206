#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "data/beton/reader.h"
#include "framework/core/export.h"

namespace precast::data {

/// For a pass over files on a server: fetches values before workers need them, in the order of
/// their first use, with several connections. Values of the pass that are next to each other in the
/// file are fetched with one request of limited size, so that small samples do not need one request
/// each. Nothing else is fetched, so a pass over part of a file transfers only that part.
/// Thread-safe.
class PRECAST_API FetchAhead {
 public:
  /// A request is made when the first use of its values is less than kSamplesAhead samples ahead of
  /// the last sample that a worker has reached, and at the latest when it is kSamplesAhead / 2
  /// ahead. The other values of the request may be used later.
  static constexpr std::int64_t kSamplesAhead = 256;
  static constexpr std::uint64_t kRequestBytes = std::uint64_t{256} << 10;
  static constexpr int kConnections = 8;

  /// Starts threads that plan the pass and then fetch its values. Borrows all arguments. @param
  /// samples in the order of the pass.
  /// @throws DeviceError if a thread cannot be started.
  FetchAhead(const BetonReader& reader, const std::vector<std::size_t>& fields,
             std::span<const std::uint64_t> samples);
  FetchAhead(const FetchAhead&) = delete;
  FetchAhead& operator=(const FetchAhead&) = delete;
  /// Calls interrupt() and joins the threads.
  ~FetchAhead();

  /// Call before sample number `index` of the pass is read.
  void advance_to(std::int64_t index) {
    if (index + kSamplesAhead / 2 > request_limit_.load(std::memory_order_relaxed))
      raise_limit(index);
  }
  /// Makes all access to the reader's remote values fail soon, until this object is destroyed.
  /// Workers that wait for a value can then be joined.
  void interrupt();
  /// Waits until all requests are complete, or until the first failure. @throws the exception of
  /// that failure, unless it is a DataError, which is thrown on access to the value.
  void finish();

 private:
  struct Value {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t sample;
    std::uint32_t field;
    std::uint32_t first_use;
  };
  /// One request for the values [first, first + count) of values_.
  struct Request {
    std::size_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t first_use = 0;
  };

  void plan();
  void list_requests();
  void raise_limit(std::int64_t index);
  void work();
  /// @return the exception if the request failed, otherwise null.
  [[nodiscard]] std::exception_ptr fetch(const Request& request) const;
  void record_failure(const std::exception_ptr& failure);

  const BetonReader& reader_;
  const std::vector<std::size_t>& fields_;
  const std::span<const std::uint64_t> samples_;
  /// Sorted by position in the file.
  std::vector<Value> values_;
  /// Sorted by first use.
  std::vector<Request> requests_;
  std::atomic<bool> interrupted_{false};
  /// Requests whose first use is before this sample of the pass may be made.
  std::atomic<std::int64_t> request_limit_{kSamplesAhead};
  std::mutex mutex_;
  std::condition_variable work_available_;
  /// Guarded by mutex_. @{
  bool planned_ = false;
  std::size_t next_ = 0;
  /// Set by finish(): from then on, a failure ends the work.
  bool stop_on_failure_ = false;
  /// The first failure.
  std::exception_ptr failure_;
  /// @}
  std::vector<std::jthread> threads_;
};

/// Fetches all values of the reader's remote files. Values that arrive damaged are not stored: each
/// access fetches them again, and throws DataError if they are still damaged. @param cancel if it
/// becomes true, the function returns soon and the other values are not fetched; null: not
/// cancelled. @throws IoError; DeviceError if a thread cannot be started.
PRECAST_API void fetch_all(const BetonReader& reader, const std::atomic<bool>* cancel = nullptr);

}  // namespace precast::data
