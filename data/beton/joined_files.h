#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "data/beton/disk_file.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast::data {

/// Files with a common numbering of their bytes, one file after the other, possibly with gaps: byte
/// `begin` + i is byte i of the file that was added with `begin`. Borrows the files. @tparam File
/// DiskFile or MappedFile
template <typename File>
class JoinedFiles {
 public:
  struct Part {
    std::uint64_t begin = 0;
    const File* file = nullptr;
  };

  JoinedFiles() = default;
  /// One file, whose bytes are numbered from 0.
  JoinedFiles(const File& file)  // NOLINT(google-explicit-constructor): a file is a list of one
      : parts_{{0, &file}} {}

  /// @param begin number of the file's first byte; at least the end of the previous file.
  void add(std::uint64_t begin, const File& file) { parts_.push_back({begin, &file}); }
  [[nodiscard]] bool empty() const { return parts_.empty(); }

 protected:
  /// Sorted by `begin`.
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  /// The file that contains byte `offset` or, if that byte is in a gap, the file before the gap.
  [[nodiscard]] const Part& at(std::uint64_t offset) const {
    std::size_t i = parts_.size() - 1;
    while (i > 0 && parts_[i].begin > offset) --i;
    return parts_[i];
  }

 private:
  std::vector<Part> parts_;
};

/// Files that are read with pread. Thread-safe except for add().
class PRECAST_API DiskFiles : public JoinedFiles<DiskFile> {
 public:
  using JoinedFiles::JoinedFiles;

  /// The path of the first file, for messages.
  [[nodiscard]] const std::filesystem::path& path() const { return parts()[0].file->path(); }
  /// See DiskFile::alignment(). All files must have the same alignment and begin at multiples of
  /// it.
  [[nodiscard]] std::uint64_t alignment() const { return parts()[0].file->alignment(); }
  /// Reads bytes of one file; see DiskFile::read().
  void read(std::uint64_t offset, std::span<std::byte> to) const;
};

/// Files that are mapped. Thread-safe except for add().
class PRECAST_API MappedFiles : public JoinedFiles<MappedFile> {
 public:
  using JoinedFiles::JoinedFiles;

  /// See the functions of MappedFile; a range must be inside one file. @{
  [[nodiscard]] bool cached(std::uint64_t offset) const;
  void will_need(std::uint64_t offset, std::uint64_t bytes) const;
  void disable_readahead() const;
  /// @}
};

}  // namespace precast::data
