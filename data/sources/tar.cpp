#include "data/sources/tar.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/image/image_file.h"
#include "data/sources/archive.h"
#include "data/sources/class_files.h"
#include "data/sources/label_list.h"
#include "data/sources/tar_index.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::data {
namespace {

/// The offset of `ustar` in the files of POSIX and GNU tar.
constexpr std::size_t kMagicAt = 257;

class TarSource final : public Source {
 public:
  TarSource(const std::filesystem::path& path, const ImageListOptions& options)
      : file_(path),
        index_(open_inner_tars(index_tar(file_.bytes(), path.string()), path.string())) {
    std::vector<std::string> paths;
    for (const TarMember& member : index_.files) paths.push_back(member.path);
    ClassFiles arranged = arrange_images(paths, index_.folders, options, path.string());
    files_ = std::move(arranged.files);
    class_names_ = std::move(arranged.class_names);
    drop_replaced_members();
    skipped_files_ = std::move(arranged.skipped);
    if (skipped_files_.count() > 0) notes_["skipped_files"] = skipped_files_.count();
  }

  [[nodiscard]] std::uint64_t size() const override { return files_.size(); }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    const ClassFile& file = files_[i];
    const TarMember& member = index_.files[file.path];
    return {
        fmt::format("{}:{}", file_.path().string(), member.path),
        {ImageInput{
             {member.bytes.begin(), member.bytes.end()}, {}, format_from_extension(member.path)},
         file.label}};
  }

 private:
  /// `tar -r` can add several members with the same name; after unpacking, the last one remains.
  void drop_replaced_members() {
    const auto path_of = [this](const ClassFile& file) -> std::string_view {
      return index_.files[file.path].path;
    };
    std::vector<ClassFile> unique_files;
    for (const ClassFile& file : files_) {
      if (unique_files.empty() || path_of(unique_files.back()) != path_of(file)) {
        unique_files.push_back(file);
      } else {
        unique_files.back().path = std::max(unique_files.back().path, file.path);
        ++notes_["replaced_members"];
      }
    }
    files_ = std::move(unique_files);
  }

  MappedFile file_;
  TarIndex index_;
  std::vector<ClassFile> files_;
};

}  // namespace

std::unique_ptr<Source> open_tar(const std::filesystem::path& path,
                                 const ImageListOptions& options) {
  const MappedFile file(path);
  if (is_gzip(file.bytes())) {
    throw DataError(fmt::format(
        "{}: expected an uncompressed tar file, got a gzip file. Uncompress it first: gunzip -k {}",
        path.string(), path.string()));
  }
  return std::make_unique<TarSource>(path, options);
}

bool is_tar(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 4> kExtensions = {".tar", ".tar.gz", ".tgz", ".TAR"};
  const std::string name = path.filename().string();
  if (!std::filesystem::is_regular_file(path)) return false;
  if (std::ranges::any_of(kExtensions, [&](std::string_view end) { return name.ends_with(end); })) {
    return true;
  }
  const MappedFile file(path);
  return file.bytes().size() > kMagicAt + 5 &&
         std::memcmp(file.bytes().data() + kMagicAt, "ustar", 5) == 0;
}

}  // namespace precast::data
