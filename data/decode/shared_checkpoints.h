#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/decode/checkpoints.h"
#include "framework/core/export.h"

namespace precast::data {

/// Checkpoints of a dataset's JPEGs in memory that several processes on a host share: each process
/// can use the checkpoints that any of them has added. The memory is a file without a name (memfd),
/// which the other processes open as /proc/PID/fd/N; the system frees it when the last of them has
/// ended. Memory pages without checkpoints take no physical memory. Thread-safe, without locks.
class PRECAST_API SharedCheckpoints {
 public:
  /// Creates the memory. @param max_bytes size limit of the checkpoints, at most 256 GiB; those
  /// that would exceed it are not added.
  /// @return null if the system does not support this.
  static std::unique_ptr<SharedCheckpoints> make(std::uint64_t samples, std::size_t interval,
                                                 std::uint64_t max_bytes);
  /// Opens another process's memory. @param address the result of address() in that process.
  /// @return null if the memory belongs to another host or user, or has a different number of
  /// samples or a different interval.
  static std::unique_ptr<SharedCheckpoints> open(const std::string& address, std::uint64_t samples,
                                                 std::size_t interval);
  SharedCheckpoints(const SharedCheckpoints&) = delete;
  SharedCheckpoints& operator=(const SharedCheckpoints&) = delete;
  ~SharedCheckpoints();

  /// The address to pass to open(): one word, valid as long as this object exists.
  [[nodiscard]] std::string address() const;
  /// See JpegIndex.
  [[nodiscard]] JpegCheckpoints find(std::uint64_t sample) const;
  [[nodiscard]] bool accepts(std::uint64_t sample) const;
  void add(std::uint64_t sample, std::span<const std::uint64_t> points);
  /// Memory in use by all processes together, in bytes, and its upper limit.
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::uint64_t max_memory_bytes() const { return mapped_bytes_; }

 private:
  struct Header;
  SharedCheckpoints(int fd, void* mapping, std::uint64_t mapped_bytes);
  /// Maps `fd` and takes ownership of it. @return null if `fd` cannot be mapped.
  static std::unique_ptr<SharedCheckpoints> map(int fd, std::uint64_t bytes);
  /// For each sample, the index in numbers() at which its checkpoints begin; 0: unknown.
  [[nodiscard]] std::span<std::atomic<std::uint64_t>> entries() const;
  /// For each known sample, the number of its checkpoints, followed by the checkpoints. The first
  /// element is unused.
  [[nodiscard]] std::span<std::uint64_t> numbers() const;

  int fd_;
  Header* header_;
  std::uint64_t mapped_bytes_;
};

}  // namespace precast::data
