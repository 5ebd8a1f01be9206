#include "data/sources/tar.h"

#include <archive_entry.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/sources/archive.h"
#include "data/sources/class_files.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::data {
namespace {

/// POSIX and GNU tar have `ustar` here.
constexpr std::size_t kMagicAt = 257;

/// `./train//x/` becomes `train/x`. @throws DataError for a path that leads out of the archive.
std::string clean_path(std::string_view name, const std::string& place) {
  if (name.starts_with('/')) {
    throw DataError(fmt::format("{}: expected relative paths, got '{}'", place, name));
  }
  std::string clean;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    if (part == "..") {
      throw DataError(
          fmt::format("{}: expected paths inside the archive, got one with '..'", place));
    }
    if (part.empty() || part == ".") continue;
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  return clean;
}

/// Bytes of one member inside the tar file.
struct Extent {
  std::size_t offset = 0;
  std::size_t size = 0;
};

class TarSource final : public Source {
 public:
  explicit TarSource(const std::filesystem::path& path) : file_(path) {
    read_index();
    ClassFiles arranged = arrange_by_class(paths_, folders_, path.string());
    files_ = std::move(arranged.files);
    class_names_ = std::move(arranged.class_names);
    if (arranged.skipped > 0) notes_["skipped_files"] = arranged.skipped;
  }

  [[nodiscard]] std::uint64_t size() const override { return files_.size(); }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    const ClassFile& file = files_[i];
    const Extent& extent = extents_[file.path];
    const auto bytes = file_.bytes().subspan(extent.offset, extent.size);
    return {fmt::format("{}:{}", file_.path().string(), paths_[file.path]),
            {ImageInput{{bytes.begin(), bytes.end()}, {}}, file.label}};
  }

 private:
  void read_index() {
    const ArchiveReader reader(archive_read_new());
    if (reader == nullptr) throw std::bad_alloc();
    archive_read_support_format_tar(reader.get());
    // Over one block of memory, libarchive hands out members as pointers into that block: that
    // tells where they lie, and only headers are touched.
    int status = archive_read_open_memory(reader.get(), file_.bytes().data(), file_.bytes().size());
    archive_entry* entry = nullptr;
    while (status == ARCHIVE_OK) {
      status = archive_read_next_header(reader.get(), &entry);
      if (status == ARCHIVE_OK) add(reader.get(), entry);
    }
    if (status != ARCHIVE_EOF) {
      const char* text = archive_error_string(reader.get());
      throw DataError(fmt::format("{}: expected a whole tar file, got a damaged one ({})",
                                  file_.path().string(), text == nullptr ? "?" : text));
    }
  }

  void add(archive* reader, archive_entry* entry) {
    const char* name = archive_entry_pathname(entry);
    const std::string path = clean_path(name == nullptr ? "" : name, file_.path().string());
    const auto type = archive_entry_filetype(entry);
    const bool link = archive_entry_hardlink(entry) != nullptr;
    if (type == AE_IFDIR && !link) {
      if (!path.empty()) folders_.push_back(path);
    } else if (type == AE_IFREG && !link && !path.empty()) {
      extents_.push_back(locate(reader, entry, path));
      paths_.push_back(path);
    } else {
      throw DataError(
          fmt::format("{}: expected files and folders only, got '{}', which is a link "
                      "or a device",
                      file_.path().string(), name == nullptr ? "" : name));
    }
  }

  Extent locate(archive* reader, archive_entry* entry, const std::string& path) const {
    const auto size = static_cast<std::size_t>(archive_entry_size(entry));
    if (size == 0) return {};
    const void* data = nullptr;
    std::size_t got = 0;
    la_int64_t place = 0;
    const int status = archive_read_data_block(reader, &data, &got, &place);
    const auto* begin = static_cast<const std::byte*>(data);
    const std::span<const std::byte> all = file_.bytes();
    if (status != ARCHIVE_OK || got != size || place != 0 || begin < all.data() ||
        begin + size > all.data() + all.size()) {
      throw DataError(
          fmt::format("{}: expected {} bytes of '{}' in one piece, got {}. The archive is "
                      "cut off, or the member is sparse",
                      file_.path().string(), size, path, got));
    }
    return {static_cast<std::size_t>(begin - all.data()), size};
  }

  MappedFile file_;
  std::vector<std::string> paths_;
  std::vector<std::string> folders_;
  std::vector<Extent> extents_;
  std::vector<ClassFile> files_;
};

}  // namespace

std::unique_ptr<Source> open_tar(const std::filesystem::path& path) {
  const MappedFile file(path);
  if (is_gzip(file.bytes())) {
    throw DataError(fmt::format(
        "{}: expected an uncompressed tar file, got a gzip one. Uncompress it first: gunzip -k {}",
        path.string(), path.string()));
  }
  return std::make_unique<TarSource>(path);
}

bool is_tar(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 4> kEndings = {".tar", ".tar.gz", ".tgz", ".TAR"};
  const std::string name = path.filename().string();
  if (!std::filesystem::is_regular_file(path)) return false;
  if (std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); })) {
    return true;
  }
  const MappedFile file(path);
  return file.bytes().size() > kMagicAt + 5 &&
         std::memcmp(file.bytes().data() + kMagicAt, "ustar", 5) == 0;
}

}  // namespace precast::data
