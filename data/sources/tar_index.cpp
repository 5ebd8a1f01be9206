#include "data/sources/tar_index.h"

#include <archive_entry.h>
#include <fmt/core.h>

#include <algorithm>
#include <new>
#include <utility>

#include "data/sources/archive.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// `./train//x/` becomes `train/x`. @throws DataError for a path that leads out of the archive.
std::string clean_path(std::string_view name, const std::string& where) {
  if (name.starts_with('/')) {
    throw DataError(fmt::format("{}: expected relative paths, got '{}'", where, name));
  }
  std::string clean;
  const std::string_view all = name;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    if (part == "..") {
      throw DataError(fmt::format("{}: expected paths inside the archive, got '{}'", where, all));
    }
    if (part.empty() || part == ".") continue;
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  return clean;
}

/// Whether a warning says that a name (of a file or an owner) cannot be converted in this locale.
/// The name's bytes are available nevertheless. libarchive has no error number for this warning.
bool is_name_conversion_warning(archive* reader) {
  const char* text = archive_error_string(reader);
  return text != nullptr && std::string_view(text).find("can't be converted") != std::string::npos;
}

class Indexer {
 public:
  Indexer(std::span<const std::byte> archive, const std::string& where)
      : archive_(archive), where_(where) {}

  TarIndex index(std::size_t max_files) {
    const ArchiveReader reader(archive_read_new());
    if (reader == nullptr) throw std::bad_alloc();
    archive_read_support_format_tar(reader.get());
    // If the archive is one block of memory, libarchive returns members as pointers into that
    // block. The pointers give the members' positions, and only headers are read.
    int status = archive_read_open_memory(reader.get(), archive_.data(), archive_.size());
    archive_entry* entry = nullptr;
    while (status == ARCHIVE_OK && index_.files.size() < max_files) {
      status = archive_read_next_header(reader.get(), &entry);
      if (status == ARCHIVE_WARN && is_name_conversion_warning(reader.get())) status = ARCHIVE_OK;
      if (status == ARCHIVE_OK) add(reader.get(), entry);
    }
    if (status != ARCHIVE_EOF && status != ARCHIVE_OK) {
      const char* text = archive_error_string(reader.get());
      throw DataError(fmt::format("{}: expected an intact tar file, got a damaged one ({})", where_,
                                  text == nullptr ? "no details" : text));
    }
    return std::move(index_);
  }

 private:
  void add(archive* reader, archive_entry* entry) {
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr) name = archive_entry_pathname_utf8(entry);
    std::string path = clean_path(name == nullptr ? "" : name, where_);
    const auto type = archive_entry_filetype(entry);
    const bool link = archive_entry_hardlink(entry) != nullptr;
    if (type == AE_IFDIR && !link) {
      if (!path.empty()) index_.folders.push_back(std::move(path));
    } else if (type == AE_IFREG && !link && !path.empty()) {
      const std::span<const std::byte> bytes = locate(reader, entry, path);
      index_.files.push_back({std::move(path), bytes});
    } else {
      throw DataError(
          fmt::format("{}: expected only files and folders, got '{}', which is a link, a device or "
                      "an entry without a name",
                      where_, name == nullptr ? "" : name));
    }
  }

  std::span<const std::byte> locate(archive* reader, archive_entry* entry,
                                    const std::string& path) const {
    const auto size = static_cast<std::size_t>(archive_entry_size(entry));
    if (size == 0) return {};
    const void* data = nullptr;
    std::size_t got = 0;
    la_int64_t at = 0;
    const int status = archive_read_data_block(reader, &data, &got, &at);
    const auto* begin = static_cast<const std::byte*>(data);
    if (status != ARCHIVE_OK || got != size || at != 0 || begin < archive_.data() ||
        begin + size > archive_.data() + archive_.size()) {
      throw DataError(
          fmt::format("{}: expected {} bytes of '{}' in one piece, got {}. The archive is "
                      "truncated, or the member is sparse",
                      where_, size, path, got));
    }
    return {begin, size};
  }

  std::span<const std::byte> archive_;
  const std::string& where_;
  TarIndex index_;
};

}  // namespace

TarIndex index_tar(std::span<const std::byte> archive, const std::string& where,
                   std::size_t max_files) {
  return Indexer(archive, where).index(max_files);
}

TarIndex open_inner_tars(TarIndex outer, const std::string& where) {
  TarIndex opened;
  opened.folders = std::move(outer.folders);
  for (TarMember& member : outer.files) {
    if (!member.path.ends_with(kTarExtension)) {
      opened.files.push_back(std::move(member));
      continue;
    }
    const std::string folder = member.path.substr(0, member.path.size() - kTarExtension.size());
    TarIndex inner = index_tar(member.bytes, fmt::format("{}:{}", where, member.path));
    opened.folders.push_back(folder);
    for (const std::string& path : inner.folders) opened.folders.push_back(folder + '/' + path);
    for (const TarMember& file : inner.files)
      opened.files.push_back({folder + '/' + file.path, file.bytes});
  }
  return opened;
}

}  // namespace precast::data
