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

std::vector<std::byte> gunzip(const MappedFile& file, std::uint64_t max_bytes) {
  const ArchiveReader reader(archive_read_new());
  if (reader == nullptr) throw std::bad_alloc();
  const auto refuse = [&] {
    const char* text = archive_error_string(reader.get());
    throw DataError(fmt::format("{}: expected a whole gzip file, got a damaged one ({})",
                                file.path().string(), text == nullptr ? "?" : text));
  };
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_read_support_format_empty(reader.get());
  archive_entry* entry = nullptr;
  if (archive_read_open_memory(reader.get(), file.bytes().data(), file.bytes().size()) !=
      ARCHIVE_OK) {
    refuse();
  }
  std::vector<std::byte> out;
  const int header = archive_read_next_header(reader.get(), &entry);
  if (header == ARCHIVE_EOF) return out;
  if (header != ARCHIVE_OK) refuse();
  // Memory grows with what really arrives: a small file can claim to hold anything.
  while (out.size() < max_bytes) {
    const std::size_t before = out.size();
    out.resize(before + std::min<std::uint64_t>(kPieceBytes, max_bytes - before));
    const la_ssize_t got =
        archive_read_data(reader.get(), out.data() + before, out.size() - before);
    if (got < 0) refuse();
    out.resize(before + static_cast<std::size_t>(got));
    if (got == 0) break;
  }
  return out;
}

}  // namespace

bool is_gzip(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x1F} && file[1] == std::byte{0x8B};
}

std::vector<std::byte> read_uncompressed(const std::filesystem::path& path,
                                         std::uint64_t max_bytes) {
  const MappedFile file(path);
  if (is_gzip(file.bytes())) return gunzip(file, max_bytes);
  const auto part = file.bytes().first(std::min<std::uint64_t>(max_bytes, file.bytes().size()));
  return {part.begin(), part.end()};
}

}  // namespace precast::data
