#include "data/sources/archive.h"

#include <archive_entry.h>
#include <fmt/core.h>

#include <algorithm>
#include <new>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::data {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

[[noreturn]] void refuse(archive* reader, const std::string& where, const char* what) {
  const char* text = archive_error_string(reader);
  throw DataError(fmt::format("{}: expected an intact {} file, got a damaged one ({})", where, what,
                              text == nullptr ? "no details" : text));
}

/// Reads the rest of the entry at which `reader` is positioned, at most `max_bytes` of it. Memory
/// grows with the data that is read, because a small file can claim any size.
std::vector<std::byte> read_entry(archive* reader, std::uint64_t max_bytes,
                                  const std::string& where, const char* what) {
  std::vector<std::byte> out;
  while (out.size() < max_bytes) {
    const std::size_t before = out.size();
    out.resize(before + std::min<std::uint64_t>(kPieceBytes, max_bytes - before));
    const la_ssize_t got = archive_read_data(reader, out.data() + before, out.size() - before);
    if (got < 0) refuse(reader, where, what);
    out.resize(before + static_cast<std::size_t>(got));
    if (got == 0) break;
  }
  return out;
}

/// Returns the uncompressed bytes of a member of a zip file. Reads at most the size that the
/// archive states for the member, because a member of a few kilobytes can expand to terabytes.
/// @throws DataError if the member has another size.
std::vector<std::byte> read_zip_entry(archive* reader, archive_entry& entry,
                                      const std::string& where) {
  const auto announced = static_cast<std::uint64_t>(archive_entry_size(&entry));
  std::vector<std::byte> bytes = read_entry(reader, announced, where, "zip");
  std::byte surplus{};
  const la_ssize_t more = archive_read_data(reader, &surplus, 1);
  if (more < 0) refuse(reader, where, "zip");
  if (more == 0 && bytes.size() == announced) return bytes;
  throw DataError(
      fmt::format("{}: expected {} bytes according to the archive, got {}. The archive is damaged",
                  where, announced, more > 0 ? "more" : std::to_string(bytes.size())));
}

std::vector<std::byte> gunzip(const MappedFile& file, std::uint64_t max_bytes) {
  const ArchiveReader reader(archive_read_new());
  if (reader == nullptr) throw std::bad_alloc();
  const std::string where = file.path().string();
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_read_support_format_empty(reader.get());
  archive_entry* entry = nullptr;
  if (archive_read_open_memory(reader.get(), file.bytes().data(), file.bytes().size()) !=
      ARCHIVE_OK) {
    refuse(reader.get(), where, "gzip");
  }
  const int header = archive_read_next_header(reader.get(), &entry);
  if (header == ARCHIVE_EOF) return {};
  if (header != ARCHIVE_OK) refuse(reader.get(), where, "gzip");
  return read_entry(reader.get(), max_bytes, where, "gzip");
}

}  // namespace

bool is_gzip(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x1F} && file[1] == std::byte{0x8B};
}

std::vector<std::byte> unzip_member(std::span<const std::byte> archive_bytes,
                                    const std::string& member, const std::string& where) {
  const ArchiveReader reader(archive_read_new());
  if (reader == nullptr) throw std::bad_alloc();
  archive_read_support_format_zip_seekable(reader.get());
  int status = archive_read_open_memory(reader.get(), archive_bytes.data(), archive_bytes.size());
  archive_entry* entry = nullptr;
  while (status == ARCHIVE_OK) {
    status = archive_read_next_header(reader.get(), &entry);
    if (status != ARCHIVE_OK) break;
    const char* name = archive_entry_pathname(entry);
    if (name != nullptr && name == member)
      return read_zip_entry(reader.get(), *entry, fmt::format("{}:{}", where, member));
  }
  if (status != ARCHIVE_EOF) refuse(reader.get(), where, "zip");
  throw DataError(fmt::format("{}: expected a member {}, got none", where, member));
}

std::vector<std::byte> read_uncompressed(const std::filesystem::path& path,
                                         std::uint64_t max_bytes) {
  const MappedFile file(path);
  if (is_gzip(file.bytes())) return gunzip(file, max_bytes);
  const auto part = file.bytes().first(std::min<std::uint64_t>(max_bytes, file.bytes().size()));
  return {part.begin(), part.end()};
}

}  // namespace precast::data
