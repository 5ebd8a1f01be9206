#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/beton/reader.h"

namespace precast::tools {

struct StoredJpeg {
  std::span<const std::byte> bytes;
  int height = 0;
  int width = 0;
  /// For error messages.
  std::string name;
};

/// JPEGs in memory: those of a .beton file, or separate files.
class StoredJpegs {
 public:
  /// @param paths one .beton file, or JPEG files. @throws IoError if a file cannot be read,
  /// DataError if a file is not a JPEG or if the .beton file contains no JPEG.
  explicit StoredJpegs(const std::vector<std::string>& paths);

  [[nodiscard]] const std::vector<StoredJpeg>& all() const { return jpegs_; }
  /// Number of images of the .beton file that are stored raw and therefore skipped.
  [[nodiscard]] std::size_t raw_count() const { return raw_count_; }

 private:
  void add_dataset(const std::string& path);
  void add_file(const std::string& path);

  std::vector<StoredJpeg> jpegs_;
  std::size_t raw_count_ = 0;
  std::unique_ptr<data::BetonReader> reader_;
  std::vector<std::unique_ptr<MappedFile>> files_;
};

}  // namespace precast::tools
