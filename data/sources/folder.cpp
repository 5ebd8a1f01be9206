#include "data/sources/folder.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "data/image/image_file.h"
#include "data/sources/class_files.h"
#include "data/sources/label_list.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;

/// Deeper nesting is probably a link that points back to one of its parent folders.
constexpr int kMaxDepth = 32;

class FolderSource final : public Source {
 public:
  FolderSource(const fs::path& root, const ImageListOptions& options) : root_(root) {
    std::vector<std::string> folders;
    list(paths_, folders);
    ClassFiles arranged = arrange_images(paths_, folders, options, root.string());
    files_ = std::move(arranged.files);
    class_names_ = std::move(arranged.class_names);
    skipped_files_ = std::move(arranged.skipped);
    if (skipped_files_.count() > 0) notes_["skipped_files"] = skipped_files_.count();
  }

  [[nodiscard]] std::uint64_t size() const override { return files_.size(); }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    const ClassFile& file = files_[i];
    const fs::path path = root_ / paths_[file.path];
    return {path.string(),
            {ImageInput{read_file(path), {}, format_from_extension(path.native())}, file.label}};
  }

 private:
  void list(std::vector<std::string>& files, std::vector<std::string>& folders) const {
    const std::size_t skip = (root_ / "").string().size();
    std::error_code failed;
    fs::recursive_directory_iterator entry(root_, fs::directory_options::follow_directory_symlink,
                                           failed);
    for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
      if (entry.depth() > kMaxDepth) {
        throw DataError(
            fmt::format("{}: expected at most {} nested folders, got more. Does a link "
                        "point back to one of its parent folders?",
                        entry->path().string(), kMaxDepth));
      }
      const std::string path = entry->path().string().substr(skip);
      std::error_code ignored;  // A broken link counts as a file.
      if (entry->is_directory(ignored)) {
        folders.push_back(path);
      } else {
        files.push_back(path);
      }
    }
    if (failed) throw IoError("cannot list", root_.string(), failed.value());
  }

  fs::path root_;
  std::vector<std::string> paths_;
  std::vector<ClassFile> files_;
};

}  // namespace

std::unique_ptr<Source> open_folder(const fs::path& path, const ImageListOptions& options) {
  return std::make_unique<FolderSource>(path, options);
}

bool is_folder(const fs::path& path) {
  return fs::is_directory(path);
}

}  // namespace precast::data
