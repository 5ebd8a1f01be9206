#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/sources/skipped_files.h"
#include "framework/core/export.h"

namespace precast::data {

/// One image file of a class.
struct ClassFile {
  /// Index into the `paths` of arrange_by_class() or arrange_by_list().
  std::size_t path = 0;
  std::int64_t label = 0;
};

/// Image files, in the order of the samples in the new dataset.
struct ClassFiles {
  std::vector<std::string> class_names;
  std::vector<ClassFile> files;
  SkippedFiles skipped;
};

/// Whether a name has an extension that torchvision's ImageFolder accepts, or the extension of a
/// GIF.
[[nodiscard]] PRECAST_API bool is_image_name(std::string_view path);
/// Whether the name of the file, or of a folder that contains it, begins with a dot.
[[nodiscard]] PRECAST_API bool is_hidden(std::string_view path);
/// Whether a file is left out because it is hidden or not named as an image. If so, adds it to
/// `skipped_files`.
[[nodiscard]] bool skip_file(const std::string& path, SkippedFiles& skipped_files);

/// Determines classes and order as torchvision's ImageFolder does: classes are the sorted names of
/// the top-level folders, labels count them from 0, files are sorted inside a class (folder by
/// folder), images are recognised by extension. There are two additions. If one folder contains all
/// images (such as `train/`), the class folders are those inside it, and folders outside it are
/// ignored. If no image is in a folder and all are named `n01234567_...`, the class of each is its
/// WordNet id. Hidden files and folders, whose names begin with a dot, are left out.
/// @param paths relative paths of files, parts separated by `/`, in any order.
/// @param folders relative paths of folders, so that a class folder without images is noticed.
/// @param where   names the source in messages.
/// @param classes if not empty, all existing classes in the order of their labels, so that a split
/// that lacks some of them has the same labels as the other splits. If a name occurs several times,
/// its label is the position of the first one.
/// @throws DataError if there are no images, a class folder contains no images and `classes` is
/// empty, there are several splits next to each other, the folders do not determine the classes, or
/// a class is not in `classes`.
[[nodiscard]] PRECAST_API ClassFiles arrange_by_class(const std::vector<std::string>& paths,
                                                      const std::vector<std::string>& folders,
                                                      const std::string& where,
                                                      const std::vector<std::string>& classes = {});

}  // namespace precast::data
