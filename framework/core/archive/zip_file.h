#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast {

/// The CRC-32 that zip and PNG use (reflected 0x04C11DB7). @param before the CRC of the preceding
/// bytes.
[[nodiscard]] PRECAST_API std::uint32_t crc32(std::span<const std::byte> bytes,
                                              std::uint32_t before = 0);

/// Reads zip archives whose entries are stored, not compressed, as torch writes them, including
/// zip64 (PKWARE APPNOTE 6.3). Entries are views of the file. Thread-safe after construction.
class PRECAST_API ZipReader {
 public:
  /// Reads the directory. @param source names the file in messages. @throws CheckpointError if the
  /// file is not a zip archive, is truncated or damaged, or has a duplicate name.
  ZipReader(std::span<const std::byte> file, std::string source);

  /// Names in the directory's order.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool contains(std::string_view name) const { return entries_.contains(name); }
  /// Whether the entry can be read: it is neither compressed nor encrypted. @throws CheckpointError
  /// for an unknown name.
  [[nodiscard]] bool is_stored(std::string_view name) const;
  /// The entry's bytes. Checks their CRC, unless the stored CRC is 0, as torch writes it after
  /// `set_crc32_options(False)`. @throws CheckpointError for an unknown name, and for a damaged,
  /// compressed or encrypted entry.
  [[nodiscard]] std::span<const std::byte> read(std::string_view name) const;
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  struct Entry {
    std::uint64_t header_offset;
    std::uint64_t size;
    std::uint32_t crc;
    bool stored;
  };
  struct Directory {
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t entries;
  };
  [[nodiscard]] const Entry& entry(std::string_view name) const;
  [[nodiscard]] Directory find_directory() const;
  void read_directory(const Directory& directory);

  std::span<const std::byte> file_;
  std::string source_;
  std::vector<std::string> names_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// Writes a zip archive of stored entries. The bytes of each entry are aligned to 64 bytes, as
/// torch requires for memory mapping. No file appears under the final name before finish(). Equal
/// entries produce identical files. Not thread-safe.
class PRECAST_API ZipWriter {
 public:
  /// @param zip32_limit sizes and offsets of at least this many bytes use zip64 fields; only tests
  /// lower it.
  explicit ZipWriter(const std::filesystem::path& path, FileOps& ops = posix_file_ops(),
                     std::uint64_t zip32_limit = UINT32_MAX);

  /// @throws IoError
  void add(const std::string& name, std::span<const std::byte> bytes);
  /// Writes the directory and makes the file visible. Call once. @throws IoError
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t header_offset;
    std::uint64_t size;
    std::uint32_t crc;
  };
  [[nodiscard]] std::string directory_entry(const Entry& entry) const;

  AtomicFile file_;
  std::uint64_t zip32_limit_;
  std::vector<Entry> entries_;
};

}  // namespace precast
