#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/sources/class_files.h"
#include "data/sources/source.h"
#include "framework/core/config/schema.h"
#include "framework/core/export.h"

namespace precast::data {

/// All classes of a dataset.
struct ClassList {
  std::vector<std::string> names;
  /// Whether the place of a name is its label. Else labels count the sorted names, and the order is
  /// that of a list such as ILSVRC's, whose numbers count lines.
  bool in_label_order = false;

  /// The names in the order of their labels.
  [[nodiscard]] std::vector<std::string> by_label() const;
};

/// The first word of each line (WordNet ids as in ILSVRC's lists of classes, whatever follows), or
/// whole lines, where one of several words is a folder's name; in the file's order.
/// @param paths of the images. @throws IoError; DataError for a class that is there twice, or none
/// at all
[[nodiscard]] PRECAST_API std::vector<std::string> read_class_list(
    const std::filesystem::path& file, const std::vector<std::string>& paths = {});

/// The class names in a .beton file, those of its first int field that has any; of another file,
/// those of read_class_list(). An empty path: none.
/// @throws as read_class_list(); DataError for a .beton file without class names
[[nodiscard]] PRECAST_API ClassList read_classes(const std::filesystem::path& file,
                                                 const std::vector<std::string>& paths = {});

/// What the option --classes accepts, for help.
inline constexpr const char* kClassesHelp =
    "all classes: a file with one per line, or a .beton file that has their names (the training "
    "set). A split that lacks some of them then has the labels of the others; numbers in a list of "
    "labels are line numbers of this file, from 1";

/// Assigns classes to images by a list, if folders do not give them. It is one of:
///
/// - LOC_val_solution.csv of ImageNet's Kaggle edition (`ImageId,PredictionString`),
/// - lines of a name and a class, apart by blanks, a tab or a comma; folders and endings of names
///   do not count,
/// - lines of a class, for the images in the order of their names,
/// - numbers that name no class, which are places in `classes`, counted from 1 as ILSVRC's are,
///   unless `classes` are those of a .beton file.
///
/// Labels are those of `classes`, or count the sorted names of the list. Files are sorted by label,
/// then name, as arrange_by_class would after sorting images into folders. Hidden files are left
/// out.
/// @param classes in ILSVRC's order where the list has numbers; may be empty.
/// @throws IoError; DataError naming what is in one of list and images only, what is there twice,
/// classes that `classes` lacks, and numbers without it.
[[nodiscard]] PRECAST_API ClassFiles arrange_by_list(const std::vector<std::string>& paths,
                                                     const std::filesystem::path& list,
                                                     const ClassList& classes,
                                                     const std::string& place);

/// Of sources of image files.
struct PRECAST_API ImageListOptions {
  /// A list of the images' classes; empty: a class a folder.
  std::string labels;
  /// All classes, as read_classes(): a split that lacks some of them gets the labels of the others.
  std::string classes;

  void options(Schema& schema);
};

/// By a list where `options` have one, else by folder.
[[nodiscard]] ClassFiles arrange_images(const std::vector<std::string>& paths,
                                        const std::vector<std::string>& folders,
                                        const ImageListOptions& options, const std::string& place);

}  // namespace precast::data
