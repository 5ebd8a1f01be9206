#include "data/cache/fetch_ahead.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <stop_token>
#include <system_error>

#include "framework/core/cancel.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Interval at which fetch_all() checks `cancel`.
constexpr std::chrono::milliseconds kCancelInterval{20};

/// Calls FetchAhead::finish(), and interrupts it when `*cancel` becomes true.
void finish_or_cancel(FetchAhead& ahead, const std::atomic<bool>* cancel) {
  std::jthread watch;
  if (cancel != nullptr) {
    watch = std::jthread([&](const std::stop_token& finished) {
      while (!finished.stop_requested() && !*cancel) std::this_thread::sleep_for(kCancelInterval);
      if (*cancel) ahead.interrupt();
    });
  }
  try {
    ahead.finish();
  } catch (const IoError&) {
    if (!is_set(cancel)) throw;
  }
}

}  // namespace

FetchAhead::FetchAhead(const BetonReader& reader, const std::vector<std::size_t>& fields,
                       std::span<const std::uint64_t> samples)
    : reader_(reader), fields_(fields), samples_(samples) {
  require(samples.size() < std::numeric_limits<std::uint32_t>::max(), "a pass has < 2^32 samples");
  try {
    // For a million samples, planning takes some tenths of a second, so one of the threads does it.
    threads_.emplace_back([this] {
      plan();
      work();
    });
    while (threads_.size() < kConnections) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    interrupt();
    const std::size_t started = threads_.size();
    threads_.clear();
    for (RemoteFile* remote : reader_.remotes()) remote->resume();
    throw DeviceError(
        fmt::format("loader: cannot start connection {} of {}: {}. Use fewer "
                    "workers, or allow more processes (ulimit -u)",
                    started + 1, kConnections, error.code().message()));
  }
}

FetchAhead::~FetchAhead() {
  interrupt();
  threads_.clear();
  for (RemoteFile* remote : reader_.remotes()) remote->resume();
}

void FetchAhead::plan() {
  try {
    list_requests();
  } catch (...) {
    // Without requests, the workers of the pass fetch their values themselves.
    requests_.clear();
    record_failure(std::current_exception());
  }
  {
    const std::scoped_lock lock(mutex_);
    planned_ = true;
  }
  work_available_.notify_all();
}

void FetchAhead::list_requests() {
  for (std::size_t i = 0; i < samples_.size() && !interrupted_; ++i) {
    for (const std::size_t field : fields_) {
      const std::uint64_t sample = samples_[i];
      if (reader_.remote_value(sample, field).file == nullptr) continue;
      const std::uint64_t begin = reader_.blob_offset(sample, field);
      values_.push_back({begin, begin + reader_.blob_bytes(sample, field), sample,
                         static_cast<std::uint32_t>(field), static_cast<std::uint32_t>(i)});
    }
  }
  std::ranges::sort(values_, {}, [](const Value& v) { return std::pair(v.begin, v.first_use); });
  // If a sample occurs several times, its first use determines when it is fetched.
  const auto same = std::ranges::unique(values_, {}, &Value::begin);
  values_.erase(same.begin(), same.end());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    const bool extends_previous =
        i > 0 && value.begin == values_[i - 1].end &&
        value.end - values_[requests_.back().first].begin <= kRequestBytes;
    if (!extends_previous) requests_.push_back({i, 0, value.first_use});
    ++requests_.back().count;
    requests_.back().first_use = std::min(requests_.back().first_use, value.first_use);
  }
  std::ranges::stable_sort(requests_, {}, &Request::first_use);
}

void FetchAhead::raise_limit(std::int64_t index) {
  {
    const std::scoped_lock lock(mutex_);
    if (index + kSamplesAhead <= request_limit_) return;
    request_limit_ = index + kSamplesAhead;
  }
  work_available_.notify_all();
}

void FetchAhead::work() {
  for (;;) {
    Request request;
    {
      std::unique_lock lock(mutex_);
      const auto ended = [&] {
        return next_ == requests_.size() || (stop_on_failure_ && failure_);
      };
      work_available_.wait(lock, [&] {
        if (interrupted_ || !planned_) return interrupted_.load();
        return ended() || requests_[next_].first_use < request_limit_;
      });
      if (interrupted_ || ended()) return;
      request = requests_[next_++];
    }
    if (const std::exception_ptr failure = fetch(request)) record_failure(failure);
  }
}

std::exception_ptr FetchAhead::fetch(const Request& request) const {
  try {
    std::vector<RemoteValue> values;
    RemoteFile* file = nullptr;
    for (std::size_t i = 0; i < request.count; ++i) {
      const Value& planned = values_[request.first + i];
      const BetonReader::Remote remote = reader_.remote_value(planned.sample, planned.field);
      file = remote.file;
      values.push_back(remote.value);
    }
    return file->fetch(values);
  } catch (...) {
    return std::current_exception();
  }
}

void FetchAhead::record_failure(const std::exception_ptr& failure) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = failure;
}

void FetchAhead::interrupt() {
  {
    const std::scoped_lock lock(mutex_);
    if (interrupted_.exchange(true)) return;
  }
  work_available_.notify_all();
  for (RemoteFile* remote : reader_.remotes()) remote->interrupt();
}

void FetchAhead::finish() {
  {
    const std::scoped_lock lock(mutex_);
    stop_on_failure_ = true;
  }
  raise_limit(std::numeric_limits<std::uint32_t>::max());
  for (std::jthread& thread : threads_) thread.join();
  if (failure_) std::rethrow_exception(failure_);
}

void fetch_all(const BetonReader& reader, const std::atomic<bool>* cancel) {
  if (reader.remotes().empty() || is_set(cancel)) return;
  std::vector<std::size_t> fields;
  for (std::size_t field = 0; field < reader.fields().size(); ++field)
    if (reader.fields()[field].has_pointer()) fields.push_back(field);
  std::vector<std::uint64_t> samples(reader.size());
  std::iota(samples.begin(), samples.end(), std::uint64_t{0});
  {
    FetchAhead ahead(reader, fields, samples);
    finish_or_cancel(ahead, cancel);
  }
  // A value that was in the same request as a damaged value may still be missing.
  for (const std::uint64_t sample : samples) {
    if (is_set(cancel)) return;
    for (const std::size_t field : fields) {
      try {
        static_cast<void>(reader.blob(sample, field));
      } catch (const DataError&) {
        // The pass reports the damaged value (data.on_corrupt).
      }
    }
  }
}

}  // namespace precast::data
