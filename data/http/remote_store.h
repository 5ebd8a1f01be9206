#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/http/http_client.h"
#include "framework/core/file.h"

namespace precast::data {

/// Returns the XXH3-64 of `bytes`, but 1 instead of 0, because 0 means that there is no hash.
[[nodiscard]] std::uint64_t stored_hash(std::span<const std::byte> bytes);

/// Whether a file system of this type (statfs's f_type) is on a network: NFS, Lustre, GPFS, SMB,
/// Ceph, BeeGFS, AFS or 9p. False for FUSE, although it may be on a network.
[[nodiscard]] PRECAST_API bool is_network_file_system(std::uint64_t type);

/// The copy on disk of one version of a remote file: a sparse file with the parts that were
/// fetched, and next to it a mapped file with the hash of each part. A part counts as fetched if
/// its bytes match its hash. The bytes are written before the hash, so an interrupted write is
/// noticed. All processes on a host share the copy. Thread-safe except for resize_values(). Threads
/// must not write the same range at the same time; RangeLock does not prevent this.
class RemoteStore {
 public:
  /// Opens or creates the copy of this version, in a separate folder under `cache`. URLs that
  /// differ only in user name, password and the parameters of signatures have the same copy. Warns,
  /// once per process, if the folder is, or may be, on a network. @throws IoError naming the
  /// folder.
  RemoteStore(const std::filesystem::path& cache, const std::string& url,
              const HttpVersion& version);
  RemoteStore(const RemoteStore&) = delete;
  RemoteStore& operator=(const RemoteStore&) = delete;
  ~RemoteStore();

  /// Returns the version of the file at this URL that has a copy; nothing if no version or several
  /// versions have one.
  [[nodiscard]] static std::optional<HttpVersion> cached_version(const std::filesystem::path& cache,
                                                                 const std::string& url);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// The sparse file. Bytes that were not fetched are 0.
  [[nodiscard]] const MappedFile& file() const { return *file_; }
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;

  /// Hashes of samples' values, by RemoteValue::index; 0 if the value was not fetched. @{
  void resize_values(std::uint64_t values);
  [[nodiscard]] std::uint64_t value_hash(std::uint64_t value) const;
  void set_value_hash(std::uint64_t value, std::uint64_t hash) const;
  /// @}

  /// Hashes of a few other ranges, such as header, metadata, checksums and allocation table.
  /// range_hash() returns 0 for an unknown range. If the table is full, set_range_hash() does
  /// nothing, and the range is fetched again the next time. @{
  [[nodiscard]] std::uint64_t range_hash(std::uint64_t begin, std::uint64_t end) const;
  void set_range_hash(std::uint64_t begin, std::uint64_t end, std::uint64_t hash) const;
  void forget_ranges() const;
  /// @}

  /// Locks a range, while this object exists, against other processes and other RemoteStore
  /// objects. It does not lock against threads that use the same RemoteStore: if their ranges
  /// overlap, the first thread that unlocks its range unlocks it for all. If the lock is not
  /// acquired within `limit_s` or before `stop` returns true, or if the file system does not
  /// support locks, there is no lock. Bytes may then be fetched twice, which is harmless.
  class RangeLock {
   public:
    RangeLock(const RemoteStore& store, std::uint64_t begin, std::uint64_t end, double limit_s,
              const std::function<bool()>& stop);
    RangeLock(const RangeLock&) = delete;
    RangeLock& operator=(const RangeLock&) = delete;
    ~RangeLock();

   private:
    int fd_;
    std::uint64_t begin_;
    std::uint64_t end_;
    bool held_ = false;
  };

 private:
  struct State;
  struct Mapping;

  std::filesystem::path folder_;
  int data_fd_ = -1;
  int state_fd_ = -1;
  std::unique_ptr<MappedFile> file_;
  std::unique_ptr<Mapping> state_;
  std::uint64_t values_ = 0;
  /// Protects the table of ranges from other threads of this process; the RangeLock of the table
  /// excludes only other processes.
  mutable std::mutex table_mutex_;
};

}  // namespace precast::data
