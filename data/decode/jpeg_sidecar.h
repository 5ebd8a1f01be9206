#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/beton/sums.h"
#include "data/decode/checkpoints.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast::data {

/// Number of samples in a block of a sidecar. For photos of 512 px, a block takes about 45 KB and
/// is verified in 4 us. The table of ImageNet's 20,000 blocks takes 320 KB.
inline constexpr std::uint64_t kSidecarBlockSamples = 64;

/// The path FILE.jidx.
[[nodiscard]] PRECAST_API std::filesystem::path jpeg_sidecar(const std::filesystem::path& dataset);
/// Removes the FILE.jidx of an older file with the dataset's name. Does nothing if FILE.jidx is not
/// a JPEG index.
/// @throws IoError
PRECAST_API void remove_jpeg_sidecar(const std::filesystem::path& dataset,
                                     FileOps& ops = posix_file_ops());

/// Writes the checkpoints of a dataset's JPEGs to a sidecar (FORMAT.md), sample by sample. Needs
/// memory for the current block, plus 16 bytes for each block of the file. The file appears when
/// commit() succeeds. Not thread-safe.
class PRECAST_API JpegSidecarWriter {
 public:
  /// @param path the sidecar. @param interval MCUs from one checkpoint to the next.
  /// @throws IoError
  JpegSidecarWriter(const std::filesystem::path& path, std::size_t interval,
                    FileOps& ops = posix_file_ops());

  /// Adds the next sample. @param points its checkpoints; empty if it has none. @throws IoError
  void add(std::span<const std::uint64_t> points);
  /// Writes the remaining data. Call once, after the last sample. @param fingerprint of the dataset
  /// (BetonReader::fingerprint()). @throws IoError
  void complete(const std::string& fingerprint);
  /// Makes the file durable and visible. Call once, after complete(). @throws IoError
  void commit() { file_.commit(); }
  /// Size of the file so far.
  [[nodiscard]] std::uint64_t bytes() const { return file_.size(); }

 private:
  void flush_block();

  AtomicFile file_;
  std::uint64_t interval_;
  std::uint64_t samples_ = 0;
  /// For the block that is being filled: for each sample, the index in `points_` at which its
  /// checkpoints end; and the checkpoints of all its samples.
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint64_t> points_;
  /// The end in the file and the hash of each block.
  std::vector<std::uint64_t> table_;
};

/// A memory-mapped sidecar. Header and table are verified when it is opened, and each block when
/// one of its samples is first requested, once per process. Thread-safe, without locks.
class PRECAST_API JpegSidecar {
 public:
  /// @param fingerprint of the dataset (BetonReader::fingerprint()).
  /// @throws IoError; DataError if the sidecar is damaged, has another version, or belongs to
  /// another dataset.
  JpegSidecar(const std::filesystem::path& path, const std::string& fingerprint,
              std::uint64_t samples);
  /// Reads a sidecar that is already in memory. Borrows `bytes`, whose address must be a multiple
  /// of 8. Does not log damaged blocks.
  JpegSidecar(std::span<const std::byte> bytes, const std::string& fingerprint,
              std::uint64_t samples);

  /// The checkpoints of a sample; empty if it has none, or if its block is damaged. Logs a warning
  /// for the first damaged block.
  [[nodiscard]] JpegCheckpoints find(std::uint64_t sample) const;

  [[nodiscard]] std::size_t interval() const { return interval_; }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  /// Size of the file, which is mapped, plus the memory that this process allocates.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_.size() + blocks_.size(); }
  /// Bytes that have been read for verification so far. A block counts several times if several
  /// threads verify it at the same time.
  [[nodiscard]] std::uint64_t verified_bytes() const { return verified_bytes_; }
  /// Whether a block was found to be damaged.
  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  enum class Block : std::uint8_t { unknown, intact, damaged };

  void open(const std::string& fingerprint);
  [[noreturn]] void throw_invalid(std::string_view expected, const std::string& got) const;
  [[nodiscard]] std::uint64_t block_begin(std::uint64_t block) const;
  [[nodiscard]] std::uint64_t block_end(std::uint64_t block) const;
  [[nodiscard]] std::uint64_t samples_of(std::uint64_t block) const;
  [[nodiscard]] Block verify(std::uint64_t block) const;
  void warn_damaged(std::uint64_t block) const;

  /// Null if the sidecar is in memory.
  std::unique_ptr<MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::uint64_t samples_;
  std::size_t interval_ = 0;
  /// Points into the sidecar: the end and the hash of each block.
  const std::uint64_t* table_ = nullptr;
  /// The result of verify() for each block, which is the same in all threads.
  mutable std::vector<std::atomic<Block>> blocks_;
  mutable std::atomic<std::uint64_t> verified_bytes_{0};
  mutable std::atomic<bool> damaged_{false};
};

}  // namespace precast::data
