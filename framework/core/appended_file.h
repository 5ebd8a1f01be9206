#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast {

/// A file that grows by whole pieces while a run goes on: its log, its event file. A disk that is
/// full stops nothing: pieces that it refuses are kept and tried again with the next one. One
/// thread.
class PRECAST_API AppendedFile {
 public:
  /// Goes on behind what is there. @throws IoError if the file cannot be opened or created.
  explicit AppendedFile(std::filesystem::path path, FileOps& ops = posix_file_ops());
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();

  /// Hands the piece to the system at once. The first time it is refused a warning is written.
  void append(std::string_view piece);
  /// In bytes. What the disk still refuses counts.
  [[nodiscard]] std::int64_t position() const;
  /// Cuts the file; one that is shorter lost pieces to a crash and stays, its last piece perhaps
  /// torn: what the pieces are its writer knows, and cuts that off. @throws IoError
  void cut(std::int64_t position);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void write_out();

  std::filesystem::path path_;
  FileOps& ops_;
  int fd_;
  std::int64_t written_ = 0;
  std::string unwritten_;
  bool warned_ = false;
};

}  // namespace precast
