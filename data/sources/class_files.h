#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/sources/left_out_files.h"
#include "framework/core/export.h"

namespace precast::data {

/// One image file of a class.
struct ClassFile {
  /// Index into the paths that were arranged.
  std::size_t path = 0;
  std::int64_t label = 0;
};

/// Image files in the order in which they are written.
struct ClassFiles {
  std::vector<std::string> class_names;
  std::vector<ClassFile> files;
  LeftOutFiles skipped;
};

/// Whether a name has an extension that torchvision's ImageFolder accepts, or the extension of a
/// GIF.
[[nodiscard]] PRECAST_API bool is_image_name(std::string_view path);
/// Whether the name of the file, or of a folder that contains it, begins with a dot.
[[nodiscard]] bool is_hidden(std::string_view path);
/// Whether the file is not read, because it is hidden or does not have the name of an image. If so,
/// it is added to `left_out`.
[[nodiscard]] bool leave_out(const std::string& path, LeftOutFiles& left_out);

/// Arranges classes and order like torchvision's ImageFolder: classes are the sorted names of the
/// top-level folders, labels count them from 0, files are sorted inside a class (folder by folder),
/// images are recognised by extension. In addition, folders that contain everything (`train/`
/// around all classes) are searched for the class folders, and images that are in no folder but are
/// all named `n01234567_...` get the class of that WordNet id. Hidden files and folders, whose
/// names begin with a dot, are left out.
/// @param paths   of files, relative, parts separated by `/`, in any order.
/// @param folders relative paths of folders, so that a class without images is noticed.
/// @param place   names the source in messages.
/// @param classes if not empty, all existing classes in the order of their labels, so that a split
/// that lacks some of them has the same labels as the others.
/// @throws DataError if there are no images, a class has none, there are several splits next to
/// each other, the folders do not determine the classes, or a class is not in `classes`.
[[nodiscard]] PRECAST_API ClassFiles arrange_by_class(const std::vector<std::string>& paths,
                                                      const std::vector<std::string>& folders,
                                                      const std::string& place,
                                                      const std::vector<std::string>& classes = {});

}  // namespace precast::data
