#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast {

/// A file to which a run appends complete pieces, such as the log or the event file. A failed
/// write, as on a full disk, does not stop the run: pieces that cannot be written are kept in
/// memory and written before the next piece, or by flush(). Not thread-safe.
class PRECAST_API AppendedFile {
 public:
  /// Appends to existing contents. @throws IoError if the file cannot be opened or created.
  explicit AppendedFile(std::filesystem::path path, FileOps& ops = posix_file_ops());
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();

  /// Writes the piece immediately. The first failure prints a warning; later ones do not.
  void append(std::string_view piece);
  /// Tries again to write the pieces in memory. If that fails, prints a warning with their number.
  void flush();
  /// The length in bytes, including pieces that are still in memory because they could not be
  /// written (full disk).
  [[nodiscard]] std::int64_t position() const;
  /// Whether some bytes are still in memory because they could not be written.
  [[nodiscard]] bool has_unwritten() const { return !unwritten_.empty(); }
  /// Drops everything after the first `position` bytes, in the file and in memory. If there are
  /// fewer bytes, because a crash lost the last pieces, nothing changes. The last piece of such a
  /// file may be incomplete; the caller must remove it, because only the caller can recognise an
  /// incomplete piece. @throws IoError
  void truncate(std::int64_t position);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void write_out();

  std::filesystem::path path_;
  FileOps& ops_;
  int fd_;
  std::int64_t written_ = 0;
  /// The pieces that are not in the file yet. If the first piece was written in part, only its
  /// remaining bytes are stored here.
  std::deque<std::string> unwritten_;
  bool warned_ = false;
};

}  // namespace precast
