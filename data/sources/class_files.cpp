#include "data/sources/class_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>
#include <tuple>

#include "data/order/class_names.h"
#include "framework/core/error.h"
#include "framework/core/lower_case.h"

namespace precast::data {
namespace {

/// torchvision.datasets.folder.IMG_EXTENSIONS and .gif. A file in a format that precast cannot
/// decode is thus an error, instead of being left out silently.
constexpr std::array<std::string_view, 10> kImageExtensions = {
    ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif"};
constexpr std::array<std::string_view, 5> kSplits = {"train", "val", "test", "valid", "validation"};

std::string_view first_part(std::string_view path) {
  return path.substr(0, path.find('/'));
}

/// Returns `n01440764` for `n01440764_tench.JPEG`; empty for names of another form.
std::string_view wordnet_id(std::string_view file) {
  constexpr std::size_t kLength = 9;
  if (file.size() <= kLength || file[0] != 'n' || file[kLength] != '_') return {};
  const std::string_view digits = file.substr(1, kLength - 1);
  const bool all_digits =
      std::ranges::all_of(digits, [](unsigned char letter) { return std::isdigit(letter) != 0; });
  return all_digits ? file.substr(0, kLength) : std::string_view();
}

/// Length of the leading folders, with their slashes, that contain every image and at least one
/// more level of folders.
std::size_t common_prefix(const std::vector<std::string>& paths,
                          const std::vector<ClassFile>& files) {
  std::size_t length = 0;
  while (true) {
    const std::string_view first =
        first_part(std::string_view(paths[files[0].path]).substr(length));
    for (const ClassFile& file : files) {
      const std::string_view rest = std::string_view(paths[file.path]).substr(length);
      if (std::ranges::count(rest, '/') < 2 || first_part(rest) != first) return length;
    }
    length += first.size() + 1;
  }
}

/// Finds images and their class names; leaves out the images that are not in a class folder.
class Arranger {
 public:
  Arranger(const std::vector<std::string>& paths, const std::string& where,
           const std::vector<std::string>& classes)
      : paths_(paths), where_(where), classes_given_(!classes.empty()) {
    result_.class_names = classes;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (skip_file(paths[i], result_.skipped)) continue;
      result_.files.push_back({i, 0});
    }
    if (result_.files.empty()) {
      throw DataError(
          fmt::format("{}: expected image files ({}), got none among {} files (hidden files do not "
                      "count)",
                      where, fmt::join(kImageExtensions, " "), paths.size()));
    }
    prefix_ = common_prefix(paths, result_.files);
  }

  ClassFiles arrange(const std::vector<std::string>& folders) {
    drop_files_without_class();
    number_classes();
    check_classes(folders);
    sort();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::string_view inner(std::size_t path) const {
    return std::string_view(paths_[path]).substr(prefix_);
  }
  [[nodiscard]] std::string_view class_of(const ClassFile& file) const {
    const std::string_view path = inner(file.path);
    return flat_ ? wordnet_id(path) : first_part(path);
  }

  void drop_files_without_class() {
    const auto in_root = [this](const ClassFile& file) {
      return inner(file.path).find('/') == std::string_view::npos;
    };
    flat_ = std::ranges::all_of(result_.files, in_root);
    if (!flat_) {
      for (const ClassFile& file : result_.files)
        if (in_root(file)) result_.skipped.add("in no class folder", paths_[file.path]);
      std::erase_if(result_.files, in_root);
    } else if (!std::ranges::all_of(result_.files, [this](const ClassFile& file) {
                 return !wordnet_id(inner(file.path)).empty();
               })) {
      throw DataError(fmt::format(
          "{}: expected one folder of images per class, files named like ImageNet's "
          "(n01440764_...), or a list of their classes (--labels), got {} images that are in no "
          "class folder",
          where_, result_.files.size()));
    }
  }

  void number_classes() {
    std::vector<std::string>& names = result_.class_names;
    if (!classes_given_) {
      std::set<std::string_view> found;
      for (const ClassFile& file : result_.files) found.insert(class_of(file));
      names.assign(found.begin(), found.end());
    }
    const auto labels = labels_by_name(names);
    for (ClassFile& file : result_.files) {
      const auto label = labels.find(class_of(file));
      if (label == labels.end()) {
        throw DataError(fmt::format("{}: expected only the {} classes of --class-names, got '{}'",
                                    where_, names.size(), class_of(file)));
      }
      file.label = label->second;
    }
  }

  void check_classes(const std::vector<std::string>& folders) const {
    const auto& names = result_.class_names;
    const bool only_splits = std::ranges::all_of(names, [](const std::string& name) {
      return std::ranges::find(kSplits, name) != kSplits.end();
    });
    if (only_splits && names.size() > 1) {
      throw DataError(fmt::format(
          "{}: expected the classes of one split, got the splits {} side by side. Write each to a "
          "separate file",
          where_, fmt::join(names, ", ")));
    }
    if (flat_ || classes_given_) return;
    // All remaining images are below this folder, so only the folders in it can be classes.
    const std::string_view prefix =
        std::string_view(paths_[result_.files[0].path]).substr(0, prefix_);
    for (const std::string& folder : folders) {
      if (folder.size() <= prefix_ || !folder.starts_with(prefix) || is_hidden(folder)) continue;
      const std::string_view rest = std::string_view(folder).substr(prefix_);
      if (rest.find('/') != std::string_view::npos) continue;
      if (std::ranges::binary_search(names, rest)) continue;
      throw DataError(fmt::format(
          "{}: expected images in each class folder, got none in '{}'. Remove the folder if it is "
          "not a class; otherwise list all classes with --class-names, so that labels match those "
          "of other splits",
          where_, folder));
    }
  }

  void sort() {
    const auto key = [this](const ClassFile& file) {
      const std::string_view path = paths_[file.path];
      const std::size_t slash = path.rfind('/');
      if (slash == std::string_view::npos) return std::tuple(file.label, path.substr(0, 0), path);
      // Compares folder names without the slash: `a` sorts before `a b`, as in torchvision.
      return std::tuple(file.label, path.substr(0, slash), path.substr(slash + 1));
    };
    std::ranges::sort(result_.files,
                      [&](const ClassFile& a, const ClassFile& b) { return key(a) < key(b); });
  }

  const std::vector<std::string>& paths_;
  const std::string& where_;
  /// Whether the caller gave the classes.
  const bool classes_given_;
  std::size_t prefix_ = 0;
  bool flat_ = false;
  ClassFiles result_;
};

}  // namespace

bool is_hidden(std::string_view path) {
  while (!path.empty()) {
    const std::string_view part = first_part(path);
    if (part.starts_with('.') && part != "." && part != "..") return true;
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return false;
}

bool skip_file(const std::string& path, SkippedFiles& skipped_files) {
  if (is_hidden(path)) {
    skipped_files.add("hidden", path);
  } else if (!is_image_name(path)) {
    skipped_files.add("not named as an image", path);
  } else {
    return false;
  }
  return true;
}

bool is_image_name(std::string_view path) {
  const std::string lower =
      lower_case(path.substr(path.size() - std::min<std::size_t>(path.size(), 5)));
  return std::ranges::any_of(kImageExtensions,
                             [&](std::string_view end) { return lower.ends_with(end); });
}

ClassFiles arrange_by_class(const std::vector<std::string>& paths,
                            const std::vector<std::string>& folders, const std::string& where,
                            const std::vector<std::string>& classes) {
  return Arranger(paths, where, classes).arrange(folders);
}

}  // namespace precast::data
