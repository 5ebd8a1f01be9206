#pragma once

#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/order/order.h"
#include "framework/core/config/node.h"

namespace precast::tools {

/// A dataset file that a recipe names. All files of one key together are one dataset.
struct NamedDataset {
  std::string key;
  /// Empty if the recipe does not name a file.
  std::string path;
  /// Where the recipe names it.
  Origin origin;
};

/// Checks, before anything is loaded, that the recipe names all datasets and that their local files
/// exist. @throws ConfigError if a dataset is not named, or IoError if a file does not exist; the
/// message lists all problems, each with its key and location.
void check_datasets(const std::vector<NamedDataset>& datasets);

/// Checks that labels mean the same classes in both files: each label with a name in `val` must
/// have the same name in `train`. A file without class names fits every other file.
/// @param train_field, val_field the fields of the labels.
/// @throws ConfigError naming the first difference; the hint says how to write `val` with the
/// classes of `train`.
void check_same_classes(const data::BetonReader& train, std::size_t train_field,
                        const data::BetonReader& val, std::size_t val_field);

/// Warnings about the classes: one if only one of the datasets has class names, one about classes
/// that `data.subset` leaves without samples, and one about classes that the validation set lacks.
/// @param options subset and filter.
[[nodiscard]] std::vector<std::string> class_warnings(const data::BetonReader& train,
                                                      std::size_t train_field,
                                                      const data::OrderOptions& options,
                                                      const data::BetonReader& val,
                                                      std::size_t val_field);

}  // namespace precast::tools
