#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/decode/checkpoints.h"
#include "data/decode/jpeg_sidecar.h"
#include "data/decode/shared_checkpoints.h"
#include "framework/core/export.h"

namespace precast::data {

/// Checkpoints of a dataset's JPEGs, so that a crop is decoded without reading the data before it
/// (BaselineDecoder). An index is either filled sample by sample while an epoch decodes the samples
/// for the first time, or opened from a sidecar file that `precast index` or `precast write` has
/// written. All processes on a host share the mapped sidecar; the ranks on a host can also share an
/// index that grows (share(), join()). Thread-safe, except for share(), join() and limit(), and
/// except that add() must not be called during write().
class PRECAST_API JpegIndex {
 public:
  /// An empty index. @param max_bytes limit for the checkpoints, including memory between them that
  /// stays unused; add() drops checkpoints that would exceed it.
  JpegIndex(std::uint64_t samples, std::size_t interval, std::uint64_t max_bytes);
  /// The index of a dataset of several files. @param files the indexes of the files, in order; not
  /// null.
  explicit JpegIndex(std::vector<std::shared_ptr<JpegIndex>> files);
  /// Maps a sidecar file; the returned index does not grow. @throws the errors of JpegSidecar's
  /// constructor.
  [[nodiscard]] static std::unique_ptr<JpegIndex> open(const std::filesystem::path& path,
                                                       const std::string& fingerprint,
                                                       std::uint64_t samples);

  /// The known checkpoints of a sample; empty if there are none.
  [[nodiscard]] JpegCheckpoints find(std::uint64_t sample) const;
  /// Whether add() would keep a sample's checkpoints. Call this before finding them, because that
  /// takes time.
  [[nodiscard]] bool accepts(std::uint64_t sample) const;
  /// @param points empty for a JPEG without checkpoints; accepts() then returns false for this
  /// sample.
  void add(std::uint64_t sample, std::span<const std::uint64_t> points);

  /// Moves the index, which must be empty, to memory that other processes on the host can use. Call
  /// share(), join() and limit() before any other thread uses the index.
  /// @return the memory's address, for join(); empty if the index cannot grow, or if the system
  /// cannot share memory. For several files, the addresses of their indexes, each of which may be
  /// empty.
  [[nodiscard]] std::string share();
  /// Replaces this index, which must be empty, with the index that another process has shared.
  /// @param address the result of share() in that process. @return false if the shared index cannot
  /// be opened, or if this index cannot grow; for several files, only if this is so for each of
  /// them.
  [[nodiscard]] bool join(const std::string& address);
  /// Lowers the size limit of an index that can grow and is not shared.
  void limit(std::uint64_t max_bytes);

  /// Writes a sidecar atomically. Not for an index that was opened from a sidecar, is shared, or
  /// covers several files. @param fingerprint of the dataset (BetonReader::fingerprint()). @param
  /// cancel may be set by any thread to stop early. @return false if it was cancelled. @throws
  /// IoError
  bool write(const std::filesystem::path& path, const std::string& fingerprint,
             const std::atomic<bool>* cancel = nullptr) const;

  /// MCUs between checkpoints; for several files, the value of the first file.
  [[nodiscard]] std::size_t interval() const { return interval_; }
  /// MCUs between checkpoints in the file that contains `sample`.
  [[nodiscard]] std::size_t interval(std::uint64_t sample) const;
  [[nodiscard]] std::uint64_t samples() const;
  /// Memory in use, in bytes: what this process has allocated, the size of a mapped sidecar, or the
  /// used part of shared memory.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Upper limit of bytes(); for an index without a size limit (UINT64_MAX), bytes() itself.
  [[nodiscard]] std::uint64_t max_memory_bytes() const;

 private:
  /// Points to the number of checkpoints; the checkpoints follow it.
  using Entry = const std::uint64_t*;
  /// The index of one of several files.
  struct Part {
    std::shared_ptr<JpegIndex> index;
    std::uint64_t first_sample = 0;
  };
  [[nodiscard]] bool can_grow_unshared() const {
    return parts_.empty() && !sidecar_ && !shared_ && max_bytes_ > 0;
  }
  [[nodiscard]] const Part& part_of(std::uint64_t sample) const;

  std::uint64_t samples_;
  std::size_t interval_;
  std::uint64_t max_bytes_;
  std::vector<std::atomic<Entry>> entries_;
  std::atomic<std::uint64_t> bytes_{0};
  /// Set when a sample's checkpoints no longer fit.
  std::atomic<bool> full_{false};
  std::mutex mutex_;
  /// Size of all blocks, without the unused end of the last one.
  std::uint64_t used_bytes_ = 0;
  /// Blocks of memory that contain the entries.
  std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
  std::size_t used_in_block_ = 0;
  /// If not null, used instead of entries and blocks.
  std::unique_ptr<JpegSidecar> sidecar_;
  /// If not null, used instead of entries and blocks.
  std::unique_ptr<SharedCheckpoints> shared_;
  /// The indexes of several files; all other members are then unused.
  std::vector<Part> parts_;
};

}  // namespace precast::data
