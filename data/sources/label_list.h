#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/sources/class_files.h"
#include "data/sources/source.h"
#include "framework/core/config/schema.h"
#include "framework/core/export.h"

namespace precast::data {

/// The first word of each line (WordNet ids as in ILSVRC's lists of classes, whatever follows), or
/// whole lines, where one of several words is a folder's name; in the file's order.
/// @param paths of the images. @throws IoError; DataError for a class that is there twice, or none
/// at all
[[nodiscard]] PRECAST_API std::vector<std::string> read_class_list(
    const std::filesystem::path& file, const std::vector<std::string>& paths = {});

/// Assigns classes to images by a list, if folders do not give them. It is one of:
///
/// - LOC_val_solution.csv of ImageNet's Kaggle edition (`ImageId,PredictionString`),
/// - lines of a name and a class, apart by blanks, a tab or a comma; folders and endings of names
///   do not count,
/// - lines of a class, for the images in the order of their names,
/// - numbers that name no class, which are places in `classes`, counted from 1 as ILSVRC's are.
///
/// Labels count the sorted names of the classes: those of the list, or those of `classes`. Files
/// are sorted by label, then name, as arrange_by_class would after sorting images into folders.
/// @param classes in ILSVRC's order where the list has numbers; may be empty.
/// @throws IoError; DataError naming what is in one of list and images only, what is there twice,
/// classes that `classes` lacks, and numbers without it.
[[nodiscard]] PRECAST_API ClassFiles arrange_by_list(const std::vector<std::string>& paths,
                                                     const std::filesystem::path& list,
                                                     const std::vector<std::string>& classes,
                                                     const std::string& place);

/// Of sources of image files.
struct PRECAST_API ImageListOptions {
  /// A list of the images' classes; empty: a class a folder.
  std::string labels;
  /// A list of all classes: a split that lacks some of them gets the labels of the others.
  std::string classes;

  void options(Schema& schema);
};

/// By a list where `options` have one, else by folder.
[[nodiscard]] ClassFiles arrange_images(const std::vector<std::string>& paths,
                                        const std::vector<std::string>& folders,
                                        const ImageListOptions& options, const std::string& place);

}  // namespace precast::data
