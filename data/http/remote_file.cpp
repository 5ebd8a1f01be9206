#include "data/http/remote_file.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::data {
namespace {

/// Maximum size of a request for metadata.
constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;
/// Values with at most this many bytes between them are fetched with one request.
constexpr std::uint64_t kGapBytes = 16;
/// Number of attempts to fetch a value whose bytes do not match its checksum.
constexpr int kMaxTries = 3;

bool matches(const RemoteValue& value, std::span<const std::byte> bytes) {
  return !value.has_hash || XXH3_64bits(bytes.data(), bytes.size()) == value.hash;
}

}  // namespace

std::filesystem::path default_cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / "precast";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache/precast";
  throw ConfigError(
      "data.cache_dir: expected a folder for parts of remote datasets, got none, and neither "
      "XDG_CACHE_HOME nor HOME is set");
}

RemoteFile::RemoteFile(const std::string& url, const RemoteOptions& options)
    : http_(url, options.http) {
  const std::filesystem::path cache =
      options.cache.empty() ? default_cache_folder() : options.cache;
  try {
    http_.open();
  } catch (const NoResponse& error) {
    const std::optional<HttpVersion> known = RemoteStore::cached_version(cache, url);
    if (!known) throw;
    log_warning("{}. Using the copy in {}; reading a part that is not in the copy is an error",
                error.what(), cache.string());
    http_.set_version(*known);
  }
  store_ = std::make_unique<RemoteStore>(cache, url, http_.version());
}

RemoteFile::~RemoteFile() = default;

double RemoteFile::lock_limit_s() const {
  return http_.options().retry_s + static_cast<double>(http_.options().request_timeout_s);
}

void RemoteFile::ensure(std::uint64_t begin, std::uint64_t end) {
  if (begin == end) return;
  const RemoteStore::RangeLock lock(*store_, begin, end, lock_limit_s(),
                                    [this] { return interrupted(); });
  const auto local_bytes = [&] { return mapping().bytes().subspan(begin, end - begin); };
  const std::uint64_t hash = store_->range_hash(begin, end);
  if (hash != 0 && stored_hash(local_bytes()) == hash) return;
  std::vector<std::byte> piece;
  for (std::uint64_t at = begin; at < end; at += piece.size()) {
    piece.resize(std::min(kPieceBytes, end - at));
    http_.read(at, piece);
    store_->write(at, piece);
  }
  store_->set_range_hash(begin, end, stored_hash(local_bytes()));
}

void RemoteFile::forget_ranges() {
  store_->forget_ranges();
}

void RemoteFile::set_values(std::uint64_t values) {
  store_->resize_values(values);
  ready_ = std::vector<std::atomic<bool>>(values);
}

void RemoteFile::wait_for(const RemoteValue& value) {
  const auto start = std::chrono::steady_clock::now();
  while (!ready_[value.index].load(std::memory_order_acquire)) fetch_now({&value, 1});
  ++waits_;
  waited_ns_ += (std::chrono::steady_clock::now() - start) / std::chrono::nanoseconds(1);
}

std::exception_ptr RemoteFile::fetch(std::span<const RemoteValue> values) {
  try {
    fetch_now(values);
  } catch (const DataError&) {
    // Only single values are damaged. ensure() fetches each of them again and reports its error.
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void RemoteFile::claim(std::span<const RemoteValue> values, const std::shared_ptr<Flight>& flight,
                       std::vector<RemoteValue>& own) {
  const std::scoped_lock lock(mutex_);
  for (const RemoteValue& value : values) {
    if (!ready_[value.index] && flights_.try_emplace(value.index, flight).second)
      own.push_back(value);
  }
}

void RemoteFile::fetch_now(std::span<const RemoteValue> values) {
  const auto flight = std::make_shared<Flight>();
  std::vector<RemoteValue> own;
  own.reserve(values.size());
  std::exception_ptr failure;
  try {
    claim(values, flight, own);
    if (!own.empty()) {
      const RemoteStore::RangeLock range(*store_, own.front().begin, own.back().end, lock_limit_s(),
                                         [this] { return interrupted(); });
      fetch_missing(own);
    }
  } catch (const DataError&) {
    // Only single values are damaged. Threads that wait for other values of this request fetch
    // those themselves.
    failure = std::current_exception();
  } catch (...) {
    failure = flight->failure = std::current_exception();
  }
  if (own.empty() && !failure) {
    if (values.size() == 1) await(values[0]);
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    flight->done = true;
    for (const RemoteValue& value : own) flights_.erase(value.index);
  }
  flight_done_.notify_all();
  if (failure) std::rethrow_exception(failure);
}

void RemoteFile::await(const RemoteValue& value) {
  std::unique_lock lock(mutex_);
  const auto at = flights_.find(value.index);
  if (at == flights_.end()) return;
  const std::shared_ptr<Flight> flight = at->second;
  // This wait ends, because every request and its repetitions have time limits.
  flight_done_.wait(lock, [&] { return flight->done; });
  if (flight->failure) std::rethrow_exception(flight->failure);
}

void RemoteFile::fetch_missing(std::span<const RemoteValue> values) {
  std::vector<RemoteValue> wrong;
  std::size_t i = 0;
  while (i < values.size()) {
    if (is_present(values[i])) {
      ready_[values[i].index].store(true, std::memory_order_release);
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < values.size() && values[end].begin - values[end - 1].end <= kGapBytes &&
           !is_present(values[end]))
      ++end;
    for (const RemoteValue& value : fetch_run(values.subspan(i, end - i))) wrong.push_back(value);
    i = end;
  }
  for (int tries = 1; !wrong.empty(); ++tries) {
    if (tries == kMaxTries) {
      throw DataError(fmt::format(
          "{}: bytes {}-{}: expected checksum {:016x}, got other bytes {} times. The file on the "
          "server, or a proxy's copy of it, is damaged",
          redacted_url(url()), wrong[0].begin, wrong[0].end - 1, wrong[0].hash, kMaxTries));
    }
    http_.back_off(tries - 1);
    std::vector<RemoteValue> still_wrong;
    for (const RemoteValue& value : wrong)
      for (const RemoteValue& left : fetch_run({&value, 1})) still_wrong.push_back(left);
    wrong = std::move(still_wrong);
  }
}

std::vector<RemoteValue> RemoteFile::fetch_run(std::span<const RemoteValue> values) {
  const std::uint64_t begin = values.front().begin;
  std::vector<std::byte> bytes(values.back().end - begin);
  http_.read(begin, bytes);
  std::vector<RemoteValue> wrong;
  for (const RemoteValue& value : values) {
    const auto own = std::span(bytes).subspan(value.begin - begin, value.end - value.begin);
    if (!matches(value, own)) {
      wrong.push_back(value);
      continue;
    }
    store_->write(value.begin, own);
    store_->set_value_hash(value.index, stored_hash(own));
    ready_[value.index].store(true, std::memory_order_release);
  }
  return wrong;
}

std::span<const std::byte> RemoteFile::bytes_of(const RemoteValue& value) const {
  return mapping().bytes().subspan(value.begin, value.end - value.begin);
}

bool RemoteFile::is_present(const RemoteValue& value) const {
  const std::uint64_t hash = store_->value_hash(value.index);
  return hash != 0 && stored_hash(bytes_of(value)) == hash && matches(value, bytes_of(value));
}

}  // namespace precast::data
