#pragma once

#include <archive.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace precast::data {

/// A deleter for libarchive's reader.
struct FreeArchive {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
using ArchiveReader = std::unique_ptr<archive, FreeArchive>;

/// True if the file begins like a gzip file.
[[nodiscard]] bool is_gzip(std::span<const std::byte> file);

/// Returns the first `max_bytes` bytes of a file, or the entire file if it is shorter. The bytes of
/// a gzip file are those of its uncompressed content.
/// @throws IoError, or DataError for a damaged gzip file.
[[nodiscard]] std::vector<std::byte> read_uncompressed(const std::filesystem::path& path,
                                                       std::uint64_t max_bytes);

/// Returns the bytes of a member of a zip archive, uncompressed and checked against their CRC.
/// @param where names the archive in messages. @throws DataError for a damaged archive, or an
/// archive without that member.
[[nodiscard]] std::vector<std::byte> unzip_member(std::span<const std::byte> archive_bytes,
                                                  const std::string& member,
                                                  const std::string& where);

}  // namespace precast::data
