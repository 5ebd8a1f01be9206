#include "framework/core/archive/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "framework/core/archive/checkpoint_names.h"
#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/core/log.h"

namespace precast {
namespace {

namespace fs = std::filesystem;

/// Free space required in addition to the expected size: for the manifest, for folders, and for
/// data that the run (its log, its final weights) and other processes write meanwhile.
constexpr std::uint64_t kSpareBytes = 64'000'000;

/// The paths in a folder, in no particular order. Empty if the folder is missing. @throws IoError
std::vector<fs::path> list_folder(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failure;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, failure), end;
       !failure && entry != end; entry.increment(failure)) {
    paths.push_back(entry->path());
  }
  if (failure && failure != std::errc::no_such_file_or_directory) {
    throw IoError("cannot list", folder.string(), failure.value());
  }
  return paths;
}

/// Removes a folder and its contents. Entries that no longer exist count as removed. @throws
/// IoError
void remove_folder(const fs::path& folder, FileOps& ops) {
  for (const fs::path& path : list_folder(folder)) {
    std::error_code ignored;
    if (fs::is_directory(fs::symlink_status(path, ignored))) {
      remove_folder(path, ops);
    } else if (ops.unlink(path.c_str()) != 0 && errno != ENOENT) {
      throw IoError("cannot remove", path.string(), errno);
    }
  }
  if (ops.rmdir(folder.c_str()) != 0 && errno != ENOENT) {
    throw IoError("cannot remove", folder.string(), errno);
  }
}

void sync_folder(const fs::path& folder, FileOps& ops) {
  if (retry_on_eintr([&] { return ops.fsync_folder(folder.c_str()); }) != 0) {
    throw IoError("cannot sync the folder", folder.string(), errno);
  }
}

int rename_folder(const fs::path& from, const fs::path& to, FileOps& ops) {
  return retry_on_eintr([&] { return ops.rename(from.c_str(), to.c_str()); });
}

bool cannot_exchange(int errno_value) {
  return errno_value == EINVAL || errno_value == ENOSYS || errno_value == EOPNOTSUPP;
}

/// Renames the folder `from` to `to`, even if a folder `to` exists. On a file system that cannot
/// exchange names, the existing folder is renamed first; between the two renames, only checkpoints
/// of other steps exist.
/// @return the new paths of the folders that were called `to`: at most one, unless other processes
/// write the same checkpoint.
/// @throws IoError
std::vector<fs::path> move_into_place(const fs::path& from, const fs::path& to, FileOps& ops) {
  std::vector<fs::path> replaced;
  while (rename_folder(from, to, ops) != 0) {
    int rename_errno = errno;
    if (rename_errno == ENOTEMPTY || rename_errno == EEXIST) {
      if (retry_on_eintr([&] { return ops.exchange(from.c_str(), to.c_str()); }) == 0) {
        replaced.push_back(from);
        return replaced;
      }
      rename_errno = errno;
      if (cannot_exchange(rename_errno)) {
        const fs::path aside = temporary_path(to);
        rename_errno = rename_folder(to, aside, ops) == 0 ? 0 : errno;
        if (rename_errno == 0) replaced.push_back(aside);
        failpoint("checkpoint.before_second_rename");
      }
      // `to` no longer exists: it was renamed above, or another process renamed or removed it.
      if (rename_errno == 0 || rename_errno == ENOENT) continue;
    }
    if (!replaced.empty()) rename_folder(replaced.back(), to, ops);
    throw IoError("cannot rename the new checkpoint to", to.string(), rename_errno);
  }
  return replaced;
}

void check_space(const fs::path& parent, const std::string& name, std::uint64_t expected_bytes,
                 FileOps& ops) {
  const std::int64_t free_bytes = retry_on_eintr([&] { return ops.free_bytes(parent.c_str()); });
  if (free_bytes < 0) {
    throw IoError("cannot determine the free space of", parent.string(), errno);
  }
  const std::uint64_t needed = expected_bytes + kSpareBytes;
  if (static_cast<std::uint64_t>(free_bytes) < needed) {
    throw IoError(fmt::format(
        "cannot write {}: expected {} free bytes on its disk ({} for the checkpoint, "
        "and a reserve of {}), got {}. Free some space, or use a folder on another disk",
        (parent / name).string(), needed, expected_bytes, kSpareBytes, free_bytes));
  }
}

Manifest read_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifestName;
  std::error_code ignored;
  if (fs::symlink_status(path, ignored).type() == fs::file_type::not_found) {
    throw CheckpointError(fmt::format("{}: expected a manifest, got no file", path.string()));
  }
  const MappedFile file(path);
  Manifest manifest = parse_manifest(file.bytes(), path.string());
  const auto step = checkpoint_step(checkpoint.filename().string());
  if (step && *step != manifest.step) {
    throw CheckpointError(fmt::format("{}: step: expected {}, as the folder's name says, got {}",
                                      path.string(), *step, manifest.step));
  }
  return manifest;
}

/// The folders with a checkpoint's name, highest step first.
std::vector<StoredCheckpoint> list_checkpoints(const fs::path& parent) {
  std::vector<StoredCheckpoint> found;
  for (fs::path& path : list_folder(parent)) {
    const auto step = checkpoint_step(path.filename().string());
    if (step) found.push_back({*step, std::move(path), std::nullopt});
  }
  std::ranges::sort(found, std::greater<>(), &StoredCheckpoint::step);
  return found;
}

/// The steps that `retention` keeps. @param found highest step first.
std::set<std::int64_t> steps_to_keep(const std::vector<StoredCheckpoint>& found,
                                     const Retention& retention) {
  std::set<std::int64_t> kept_steps;
  for (std::size_t i = 0; i < std::min(retention.last, found.size()); ++i) {
    kept_steps.insert(found[i].step);
  }
  std::vector<StoredCheckpoint> best;
  std::ranges::copy_if(found, std::back_inserter(best),
                       [](const StoredCheckpoint& one) { return one.metric.has_value(); });
  const auto older = std::ranges::find_if(
      best, [&](const StoredCheckpoint& one) { return one.step < retention.best_since; });
  for (const std::span some : {std::span(best.begin(), older), std::span(older, best.end())}) {
    // Of checkpoints with equal metrics, the earlier one counts as better, because the run reports
    // it as its best.
    std::ranges::sort(some, [](const StoredCheckpoint& one, const StoredCheckpoint& other) {
      return one.metric != other.metric ? one.metric > other.metric : one.step < other.step;
    });
    for (std::size_t i = 0; i < std::min(retention.best, some.size()); ++i) {
      kept_steps.insert(some[i].step);
    }
  }
  return kept_steps;
}

}  // namespace

CheckpointWriter::CheckpointWriter(const fs::path& parent, std::int64_t step,
                                   std::uint64_t expected_bytes, FileOps& ops)
    : ops_(ops), parent_(parent.empty() ? "." : parent) {
  require(step >= 0, "a step is not negative");
  manifest_.step = step;
  create_folders(parent_, ops_);
  check_space(parent_, checkpoint_name(step), expected_bytes, ops_);
  folder_ = temporary_path(parent_ / checkpoint_name(step));
  if (retry_on_eintr([&] { return ops_.mkdir(folder_.c_str()); }) != 0) {
    throw IoError("cannot create folder", folder_.string(), errno);
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (folder_.empty()) return;
  try {
    remove_folder(folder_, ops_);
  } catch (const std::exception& error) {
    log_warning("{}", error.what());
  }
}

void CheckpointWriter::add(const std::string& name, std::span<const std::byte> bytes) {
  failpoint("checkpoint.before_file");
  require(is_manifest_file_name(name), "a checkpoint's files have plain names");
  AtomicFile file(path(name), ops_);
  file.append(bytes);
  file.commit();
  manifest_.files.push_back(describe_file(name, bytes));
}

void CheckpointWriter::add_written(const std::string& name) {
  require(is_manifest_file_name(name), "a checkpoint's files have plain names");
  manifest_.files.push_back(describe_file(folder_, name));
  const std::string written = path(name).string();
  const int fd = retry_on_eintr([&] { return ops_.open_append(written.c_str()); });
  if (fd < 0) throw IoError("cannot open", written, errno);
  const int synced = retry_on_eintr([&] { return ops_.fsync(fd); });
  const int sync_errno = errno;
  const int closed = ops_.close(fd);
  if (synced != 0) throw IoError("cannot sync", written, sync_errno);
  if (closed != 0 && errno != EINTR) throw IoError("cannot close", written, errno);
}

fs::path CheckpointWriter::commit(std::optional<double> metric) {
  failpoint("checkpoint.before_manifest");
  if (metric && std::isfinite(*metric)) manifest_.metric = metric;
  // All other files have been synced; this syncs the manifest and the names of all files.
  write_file(folder_ / kManifestName, manifest_text(manifest_), ops_);
  failpoint("checkpoint.before_rename");
  const fs::path final_path = parent_ / checkpoint_name(manifest_.step);
  const std::vector<fs::path> replaced = move_into_place(folder_, final_path, ops_);
  folder_.clear();
  failpoint("checkpoint.before_parent_sync");
  // Until this succeeds, the older checkpoint must stay intact: after a power failure, its name may
  // refer to it again.
  sync_folder(parent_, ops_);
  failpoint("checkpoint.before_removal");
  try {
    for (const fs::path& path : replaced) remove_folder(path, ops_);
  } catch (const IoError& error) {
    log_warning("{}", error.what());
  }
  return final_path;
}

std::vector<StoredCheckpoint> find_checkpoints(const fs::path& parent) {
  std::vector<StoredCheckpoint> found;
  for (StoredCheckpoint& checkpoint : list_checkpoints(parent)) {
    try {
      checkpoint.metric = read_manifest(checkpoint.path).metric;
    } catch (const Error&) {
      continue;
    }
    found.push_back(std::move(checkpoint));
  }
  return found;
}

Manifest verify_checkpoint(const fs::path& path) {
  Manifest manifest = read_manifest(path);
  for (const ManifestFile& expected : manifest.files) {
    const fs::path file = path / expected.name;
    std::error_code failure;
    const fs::file_status status = fs::status(file, failure);
    if (!fs::is_regular_file(status)) {
      throw CheckpointError(
          fmt::format("{}: expected a file of {} bytes, got {}", file.string(), expected.size_bytes,
                      fs::exists(status) ? "a folder or a special file" : "no file"));
    }
    const ManifestFile found = describe_file(path, expected.name);
    if (found.size_bytes != expected.size_bytes) {
      throw CheckpointError(fmt::format("{}: expected {} bytes, got {}. The checkpoint is damaged",
                                        file.string(), expected.size_bytes, found.size_bytes));
    }
    if (found.xxh3_64 != expected.xxh3_64) {
      throw CheckpointError(
          fmt::format("{}: expected the hash {:016x}, got {:016x}. The checkpoint is damaged",
                      file.string(), expected.xxh3_64, found.xxh3_64));
    }
  }
  return manifest;
}

std::optional<StoredCheckpoint> latest_valid_checkpoint(const fs::path& parent) {
  for (StoredCheckpoint& checkpoint : list_checkpoints(parent)) {
    try {
      checkpoint.metric = verify_checkpoint(checkpoint.path).metric;
      return std::move(checkpoint);
    } catch (const Error& error) {
      log_warning("{}: skipped: {}", checkpoint.path.string(), error.what());
    }
  }
  return std::nullopt;
}

std::size_t prune_checkpoints(const fs::path& parent, const Retention& retention, FileOps& ops) {
  std::vector<StoredCheckpoint> removable = find_checkpoints(parent);
  std::set<std::int64_t> kept_steps = steps_to_keep(removable, retention);
  const auto is_kept = [&](const StoredCheckpoint& one) { return kept_steps.contains(one.step); };
  std::erase_if(removable, is_kept);
  if (removable.empty()) return 0;
  const auto newest = latest_valid_checkpoint(parent);
  if (!newest) return 0;
  kept_steps = {newest->step};
  std::erase_if(removable, is_kept);

  std::vector<fs::path> moved;
  for (const StoredCheckpoint& one : removable) {
    fs::path temporary = temporary_path(one.path);
    if (rename_folder(one.path, temporary, ops) == 0) {
      moved.push_back(std::move(temporary));
    } else if (errno != ENOENT) {  // ENOENT: another process removed it
      throw IoError("cannot rename", one.path.string(), errno);
    }
  }
  failpoint("checkpoint.before_prune_sync");
  // The renames must be durable before files are removed: after a power failure, a folder with a
  // checkpoint's name must be complete.
  if (!moved.empty()) sync_folder(parent.empty() ? "." : parent, ops);
  failpoint("checkpoint.before_prune_removal");
  for (const fs::path& path : moved) remove_folder(path, ops);
  return moved.size();
}

std::size_t remove_stale_checkpoints(const fs::path& parent, CheckpointWriters writers,
                                     FileOps& ops) {
  std::size_t removed = 0;
  for (const fs::path& path : list_folder(parent)) {
    if (writers == CheckpointWriters::none ? !is_temporary(path) : !is_stale_temporary(path))
      continue;
    try {
      remove_folder(path, ops);
      ++removed;
    } catch (const IoError& error) {
      log_warning("{}", error.what());
    }
  }
  return removed;
}

}  // namespace precast
