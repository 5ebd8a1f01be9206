#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// Image files to predict, in the order of the results.
struct PhotoList {
  /// The paths as given; for the files of a folder, `folder/path`.
  std::vector<std::string> paths;
  /// Files in the given folders that are hidden or do not have the extension of an image.
  std::vector<std::string> ignored;
};

/// Lists the images of `inputs`. In a folder, these are all files with the extension of an image,
/// at any depth, sorted by path (byte by byte). As in a source of kind folder, hidden files
/// (data::is_hidden()) are left out and links are followed. A file that is given directly counts as
/// an image, whatever its name.
/// @throws IoError if a path does not exist or a folder cannot be listed; DataError for a folder
/// without images, or with folders nested more than 32 deep.
[[nodiscard]] PhotoList list_photos(const std::vector<std::string>& inputs);

/// Returns the number of photos, from `first` on, to predict together: at least 1. Groups limit the
/// disk space of the temporary datasets.
[[nodiscard]] std::size_t photo_group_size(const std::vector<std::string>& paths,
                                           std::size_t first);

/// The field that the model of a recipe reads in an evaluation; `image` if the recipe names none.
/// @throws ConfigError if the model reads several fields.
[[nodiscard]] std::string photo_field(const Recipe& recipe);

/// Image files as a dataset with a single field, so that they are processed in the same way as
/// validation images. They are stored as by `precast write --image.mode keep --image.passthrough
/// --image.quality 100`: JPEGs unchanged, unless they are unusual (CMYK, arithmetic coding, ...) or
/// decode with a warning; other images as pixels, or as JPEG above 64 MiB of pixels. EXIF
/// orientation is ignored. The dataset is an unnamed file in the folder for temporary files
/// (TMPDIR). The system releases its space when this object is destroyed or the process ends, even
/// if the process is killed.
class PhotoDataset {
 public:
  /// @param field the name of that field. @param on_progress called from time to time with the
  /// number of photos read.
  /// @throws IoError if the temporary file cannot be written
  PhotoDataset(std::span<const std::string> paths, const std::string& field, int workers,
               const std::function<void(std::uint64_t)>& on_progress);

  /// One sample for each path, in their order.
  [[nodiscard]] const data::BetonReader& reader() const { return *reader_; }
  /// For each path, why the file could not be read as an image; empty if it could. The sample of a
  /// file that could not be read is a black pixel.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  /// Number of photos that viewers, unlike precast, would rotate because of their EXIF orientation.
  [[nodiscard]] std::uint64_t rotated() const { return rotated_; }

 private:
  std::vector<std::string> problems_;
  std::uint64_t rotated_ = 0;
  std::unique_ptr<data::BetonReader> reader_;
};

}  // namespace precast::tools
