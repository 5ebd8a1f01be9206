#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/http/http_client.h"
#include "data/http/remote_store.h"
#include "framework/core/export.h"

namespace precast::data {

struct RemoteOptions {
  HttpOptions http = {};
  /// Folder for copies of remote files; empty: default_cache_folder().
  std::filesystem::path cache = {};
};

/// Returns $XDG_CACHE_HOME/precast, or ~/.cache/precast if XDG_CACHE_HOME is not an absolute path.
/// @throws ConfigError if HOME is not set either
[[nodiscard]] PRECAST_API std::filesystem::path default_cache_folder();

/// A value of a sample in a remote file.
struct RemoteValue {
  /// The number of the value among all values of the file.
  std::uint64_t index = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  /// The expected hash of the value's bytes (XXH3-64), if the file has checksums.
  bool has_hash = false;
  std::uint64_t hash = 0;
};

/// A file on an HTTP server. Its parts are fetched when they are needed, into a sparse file on disk
/// that is mapped like a local dataset. Threads, and the processes on a host, wait for each other,
/// so that a part is normally fetched only once. Thread-safe except for set_values().
class PRECAST_API RemoteFile {
 public:
  /// Requests the file's version from the server, and opens or creates the local copy of this
  /// version. If there is no response, and there is a copy of exactly one version of the file,
  /// warns and uses this copy: only reading a missing part is then an error. @throws IoError, and
  /// the errors of default_cache_folder()
  RemoteFile(const std::string& url, const RemoteOptions& options);
  RemoteFile(const RemoteFile&) = delete;
  RemoteFile& operator=(const RemoteFile&) = delete;
  ~RemoteFile();

  [[nodiscard]] const std::string& url() const { return http_.url(); }
  /// The local copy. Bytes that were not fetched are 0.
  [[nodiscard]] const MappedFile& mapping() const { return store_->file(); }
  [[nodiscard]] const std::filesystem::path& folder() const { return store_->folder(); }

  /// Fetches the range [begin, end), such as the header or the allocation table, unless the copy
  /// contains it. @throws IoError
  void ensure(std::uint64_t begin, std::uint64_t end);
  /// Forgets which ranges ensure(begin, end) has fetched: its next call for a range fetches it
  /// again.
  void forget_ranges();
  /// Sets the number of values. Call before the functions below.
  void set_values(std::uint64_t values);
  /// Fetches a value, unless the copy contains it. If this process has already found the value in
  /// the copy, the call costs one atomic load. @throws IoError; DataError naming the URL and byte
  /// range if the server repeatedly sends bytes that do not match the checksum.
  void ensure(const RemoteValue& value) {
    if (!ready_[value.index].load(std::memory_order_acquire)) wait_for(value);
  }
  /// Fetches values that are next to each other, with one request per run of missing values. Leaves
  /// out values that another thread is fetching; if `values` is a single one, waits for it instead.
  /// @return the error, or null. A wrong checksum is not returned; ensure() reports it. In threads
  /// that wait for one of the values, ensure() throws the error that is returned here.
  [[nodiscard]] std::exception_ptr fetch(std::span<const RemoteValue> values);

  /// Makes every fetch fail soon, until resume() has been called as often as interrupt(). @{
  void interrupt() { http_.interrupt(); }
  void resume() { http_.resume(); }
  [[nodiscard]] bool interrupted() const { return http_.interrupted(); }
  /// @}

  /// Bytes that the server has sent.
  [[nodiscard]] std::uint64_t bytes_received() const { return http_.bytes_received(); }
  /// Number of values that ensure() had to fetch or to check in the copy, and the total time of
  /// these calls, including waits for other threads.
  [[nodiscard]] std::uint64_t waits() const { return waits_; }
  [[nodiscard]] double seconds_waited() const { return 1e-9 * static_cast<double>(waited_ns_); }

 private:
  /// The state of a fetch by one thread, for threads that wait for the same values.
  struct Flight {
    bool done = false;
    std::exception_ptr failure;
  };

  void wait_for(const RemoteValue& value);
  void fetch_now(std::span<const RemoteValue> values);
  /// Adds the missing values that no other thread is fetching to `own`, and registers them as
  /// fetched by this thread (`flight`). `own` must have the capacity for them.
  void claim(std::span<const RemoteValue> values, const std::shared_ptr<Flight>& flight,
             std::vector<RemoteValue>& own);
  /// If another thread is fetching the value, waits until it has finished. @throws the error of
  /// that thread
  void await(const RemoteValue& value);
  /// Fetches the values that are still missing. Call while their range is locked.
  void fetch_missing(std::span<const RemoteValue> values);
  /// Fetches values with one request. @return the values whose bytes do not match their checksum.
  std::vector<RemoteValue> fetch_run(std::span<const RemoteValue> values);
  [[nodiscard]] std::span<const std::byte> bytes_of(const RemoteValue& value) const;
  /// Whether the copy contains the value.
  [[nodiscard]] bool is_present(const RemoteValue& value) const;
  [[nodiscard]] double lock_limit_s() const;

  HttpClient http_;
  std::unique_ptr<RemoteStore> store_;
  /// [values]: whether this process has found the value in the copy.
  std::vector<std::atomic<bool>> ready_;
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<std::int64_t> waited_ns_{0};
  std::mutex mutex_;
  std::condition_variable flight_done_;
  /// By RemoteValue::index; guarded by mutex_.
  std::unordered_map<std::uint64_t, std::shared_ptr<Flight>> flights_;
};

}  // namespace precast::data
