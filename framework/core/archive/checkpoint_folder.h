#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/core/archive/manifest.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast {

/// Checkpoints are folders `ckpt-<step>` (10 digits or more) in one parent folder, each with a
/// manifest. A checkpoint is written under a temporary name that no two writers share
/// (`ckpt-<step>.tmp.<host>.<process>.<token>`) and is renamed when it is complete. Before it is
/// removed, it is renamed to a temporary name. A folder with the name of a checkpoint is therefore
/// always complete, even if a process was killed. If the disk loses data that it reported as
/// written, the hashes reveal this. Functions are thread-safe.

/// Writes one checkpoint. Without commit(), the destructor removes the files that were written. Not
/// thread-safe.
class PRECAST_API CheckpointWriter {
 public:
  /// Creates `parent` if it is missing. @param expected_bytes the approximate size of all files.
  /// @throws IoError, including when less than `expected_bytes` + 64 MB are free on the disk
  CheckpointWriter(const std::filesystem::path& parent, std::int64_t step,
                   std::uint64_t expected_bytes, FileOps& ops = posix_file_ops());
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  ~CheckpointWriter();

  /// Writes a file. Names must be plain (is_manifest_file_name) and unique. @throws IoError
  void add(const std::string& name, std::span<const std::byte> bytes);
  /// The path for a file that the caller writes; call add_written() afterwards.
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  /// Adds a file that the caller has written at path(): reads it once for its hash and makes it
  /// durable. @throws IoError
  void add_written(const std::string& name);

  /// Makes the checkpoint durable and visible; replaces an older checkpoint of the same step. Call
  /// once. @param metric the metric by which checkpoints are compared; a value that is not finite
  /// is not stored.
  /// @return the checkpoint's folder. @throws IoError. The older checkpoint then still exists; if
  /// only the last sync failed, the new one exists in its place.
  std::filesystem::path commit(std::optional<double> metric = {});

 private:
  FileOps& ops_;
  std::filesystem::path parent_;
  /// The temporary folder; empty after the folder has been renamed to its final name.
  std::filesystem::path folder_;
  Manifest manifest_;
};

struct StoredCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path path;
  std::optional<double> metric;
};

/// The checkpoints whose manifest is valid and matches the folder's name, newest (highest step)
/// first. Reads only the manifests. Empty if `parent` does not exist. @throws IoError
[[nodiscard]] PRECAST_API std::vector<StoredCheckpoint> find_checkpoints(
    const std::filesystem::path& parent);

/// Reads all files and compares their sizes and hashes with the manifest. Files that the manifest
/// does not list are ignored. @throws CheckpointError naming the file; IoError if a file cannot be
/// read.
PRECAST_API Manifest verify_checkpoint(const std::filesystem::path& path);

/// The newest checkpoint that verify_checkpoint() accepts; newer ones are skipped with a warning.
/// @throws IoError if `parent` cannot be listed
[[nodiscard]] PRECAST_API std::optional<StoredCheckpoint> latest_valid_checkpoint(
    const std::filesystem::path& parent);

/// Which checkpoints are kept: the `last` newest ones and the `best` ones with the highest metric.
/// If two checkpoints have equal metrics, the earlier one counts as better. Checkpoints without a
/// metric are never among the best.
struct Retention {
  std::size_t last = 1;
  std::size_t best = 0;
  /// Checkpoints from this step on have values of the current metric. Checkpoints of earlier steps
  /// may have values of other metrics. They are compared only with each other, even if their
  /// metrics differ, and the `best` ones of them are also kept.
  std::int64_t best_since = 0;
};

/// Removes the checkpoints of find_checkpoints() that `retention` does not keep, except the newest
/// valid one. Removes nothing if no checkpoint is valid.
/// @return the number of checkpoints removed. @throws IoError
PRECAST_API std::size_t prune_checkpoints(const std::filesystem::path& parent,
                                          const Retention& retention,
                                          FileOps& ops = posix_file_ops());

/// Which processes may be writing checkpoints into a folder.
enum class CheckpointWriters {
  /// None: this process holds a lock that excludes all others, and has not begun to write.
  none,
  /// Processes of this host and of others.
  any,
};

/// Removes temporary folders that killed writers left. With CheckpointWriters::any, these are the
/// folders of processes on this host that no longer exist, and folders from any host that are older
/// than a day; with CheckpointWriters::none, all of them. Folders that cannot be removed stay.
/// @return the number of folders removed. @throws IoError if `parent` cannot be listed.
PRECAST_API std::size_t remove_stale_checkpoints(const std::filesystem::path& parent,
                                                 CheckpointWriters writers = CheckpointWriters::any,
                                                 FileOps& ops = posix_file_ops());

}  // namespace precast
