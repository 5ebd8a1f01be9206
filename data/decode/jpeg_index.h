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
/// (BaselineDecoder). Filled sample by sample while an epoch decodes the samples for the first
/// time, or opened from a sidecar file that `precast index` or `precast write` wrote and that
/// processes share. The ranks on a host can also share an index that grows (share(), join()).
/// Thread-safe, except that add() must not be called during write().
class PRECAST_API JpegIndex {
 public:
  /// An empty index. @param max_bytes when the index has reached this size, nothing more is added.
  JpegIndex(std::uint64_t samples, std::size_t interval, std::uint64_t max_bytes);
  /// The index of a dataset of several files. @param files their indexes in order, not null.
  explicit JpegIndex(std::vector<std::shared_ptr<JpegIndex>> files);
  /// Maps a sidecar file; this index does not grow. @throws as JpegSidecar.
  [[nodiscard]] static std::unique_ptr<JpegIndex> open(const std::filesystem::path& path,
                                                       const std::string& fingerprint,
                                                       std::uint64_t samples);

  /// The known checkpoints of a sample; empty if there are none.
  [[nodiscard]] JpegCheckpoints find(std::uint64_t sample) const;
  /// Whether add() would keep a sample's checkpoints. Call this before finding them, because that
  /// takes time.
  [[nodiscard]] bool wants(std::uint64_t sample) const;
  /// @param points may be empty, for a JPEG without checkpoints; they are then not requested again.
  void add(std::uint64_t sample, std::span<const std::uint64_t> points);

  /// Moves an empty index that grows into memory that other processes on the host can use. Call
  /// share() or join() before any other thread uses the index.
  /// @return the memory's address, for join(); empty if the index does not grow, or if the system
  /// cannot share memory.
  [[nodiscard]] std::string share();
  /// Replaces this index, which must be empty and growing, with another process's. @param address
  /// as share() returned there. @return whether this succeeded; false if the index does not grow.
  [[nodiscard]] bool join(const std::string& address);
  /// Lowers the limit of an index that grows and belongs to this process alone.
  void limit(std::uint64_t max_bytes);

  /// Writes a sidecar, completely or not at all. Not for an index that was opened, or of several
  /// files. @param fingerprint of the dataset (BetonReader::fingerprint()). @param cancel may be
  /// set by any thread to stop early. @return false if it was cancelled. @throws IoError
  bool write(const std::filesystem::path& path, const std::string& fingerprint,
             const std::atomic<bool>* cancel = nullptr) const;

  /// MCUs between checkpoints; of several files, those of the first.
  [[nodiscard]] std::size_t interval() const { return interval_; }
  /// MCUs between checkpoints in the file that contains `sample`.
  [[nodiscard]] std::size_t interval(std::uint64_t sample) const;
  [[nodiscard]] std::uint64_t samples() const;
  /// Memory in use, allocated by this process or mapped.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Upper limit of the memory that this process allocates for it.
  [[nodiscard]] std::uint64_t bytes_at_most() const;

 private:
  /// Points to the number of checkpoints; the checkpoints follow it.
  using Entry = const std::uint64_t*;
  /// The index of one of several files.
  struct Part {
    std::shared_ptr<JpegIndex> index;
    std::uint64_t first_sample = 0;
  };
  /// Whether it grows in this process alone.
  [[nodiscard]] bool grows_alone() const {
    return parts_.empty() && !sidecar_ && !shared_ && max_bytes_ > 0;
  }
  /// The part that the sample is in.
  [[nodiscard]] const Part& part_of(std::uint64_t sample) const;

  std::uint64_t samples_;
  std::size_t interval_;
  std::uint64_t max_bytes_;
  std::vector<std::atomic<Entry>> entries_;
  std::atomic<std::uint64_t> bytes_{0};
  /// Whether the checkpoints of some sample did not fit any more.
  std::atomic<bool> full_{false};
  std::mutex mutex_;
  std::uint64_t used_bytes_ = 0;
  /// Blocks of memory that entries are cut from.
  std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
  std::size_t used_in_block_ = 0;
  /// Takes the place of all entries.
  std::unique_ptr<JpegSidecar> sidecar_;
  /// Takes the place of entries and blocks.
  std::unique_ptr<SharedCheckpoints> shared_;
  /// The indexes of several files; all other members are then unused.
  std::vector<Part> parts_;
};

}  // namespace precast::data
