#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "data/sources/class_files.h"
#include "data/sources/source.h"
#include "framework/core/config/schema.h"
#include "framework/core/export.h"

namespace precast::data {

/// All classes of a dataset.
struct ClassList {
  /// In the order of their labels.
  std::vector<std::string> names;
  /// Whether the names come from a .beton file. A list of labels then cannot refer to them by
  /// numbers, because such numbers usually count the classes of another list.
  bool from_dataset = false;
};

using NameSet = std::unordered_set<std::string_view>;

/// Reads class names, in the file's order. A name is the first word of a line (such as the WordNet
/// ids in ILSVRC's lists of classes; the rest of the line is ignored). But if any line of several
/// words is in `names`, each name is an entire line.
/// @param names possible class names: folders of the images, or strings in a column of a table.
/// @throws IoError; DataError for a duplicate class, or a file without classes
[[nodiscard]] PRECAST_API std::vector<std::string> read_class_list(
    const std::filesystem::path& file, const NameSet& names = {});

/// Reads the class names of a .beton file (of its first int field that has any), or of a list
/// (read_class_list()). Labels are positions in the file, so that the list of an existing model's
/// classes gives the labels of that model. @param file empty: the result is empty.
/// @throws the errors of read_class_list(), and DataError for a .beton file without class names, or
/// in which two classes have the same name
[[nodiscard]] PRECAST_API ClassList read_classes(const std::filesystem::path& file,
                                                 const NameSet& names = {});

/// The help text of the option `classes`, which is --class-names on the command line.
inline constexpr const char* kClassesHelp =
    "file that lists all classes, one per line, or a .beton file with class names, such as the "
    "training set. Labels follow the order of this file, so a split that lacks some classes has "
    "the same labels as the other splits. A number in a list of labels is a position in this file, "
    "counted from 1 without empty lines";

/// Assigns classes to images that are not in class folders. `list` has one of these forms:
///
/// - LOC_val_solution.csv of ImageNet's Kaggle edition (`ImageId,PredictionString`),
/// - on each line an image's name and its class, separated by blanks, tabs, commas or semicolons;
///   folders and extensions of names are ignored,
/// - on each line a class, for the images in the order of their names (with extensions, sorted by
///   bytes).
///
/// A number that is not the name of a class is a position in `classes`, counted from 1 as in
/// ILSVRC, so that its label is the number minus 1. Such numbers are an error if `classes` come
/// from a .beton file.
///
/// Labels are positions in `classes`. If `classes` is empty, a label is the position of the class
/// among the sorted class names of the list. Files are sorted by label, then by name, as if they
/// were in one folder per class (arrange_by_class). Hidden files and files without an image
/// extension are left out.
/// @param classes in ILSVRC's order if the list contains numbers; may be empty.
/// @throws IoError; DataError naming images that are only in the list or only among the files,
/// duplicates, and classes that `classes` lacks; also for numbers without `classes`.
[[nodiscard]] PRECAST_API ClassFiles arrange_by_list(const std::vector<std::string>& paths,
                                                     const std::filesystem::path& list,
                                                     const ClassList& classes,
                                                     const std::string& where);

/// Options of sources of image files.
struct PRECAST_API ImageListOptions {
  /// A file with the images' classes (arrange_by_list()); empty: arrange_by_class().
  std::string labels;
  /// The file with all classes (read_classes()), so that a split that lacks some of them has the
  /// same labels as the other splits.
  std::string classes;

  void options(Schema& schema);
};

/// Arranges images by the list in `options`, or by folder if there is none.
[[nodiscard]] ClassFiles arrange_images(const std::vector<std::string>& paths,
                                        const std::vector<std::string>& folders,
                                        const ImageListOptions& options, const std::string& where);

}  // namespace precast::data
