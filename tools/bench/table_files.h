#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/sources/source.h"

namespace precast::tools {

/// How a file of a table is written, as options of `precast write`.
struct TableFile {
  std::string_view name;
  /// image.mode
  std::string_view mode;
  int max_resolution_px = 0;
  /// Quality of the JPEGs; 0: the file has no JPEGs.
  int quality = 0;
  /// Number of copies of each image in the file for the rows that read each image once, from disk.
  /// Large enough that the time for filling the batch queue does not matter.
  int disk_copies = 1;
};

/// Writes the files of a table from one source, and keeps them for later runs. A file contains the
/// source's first image field, and its first integer field if there is one, both encoded as
/// `precast write` encodes them. Class names are left out.
class TableFiles {
 public:
  /// @param count number of images; they are drawn at random if the source has more.
  /// @throws the exceptions of data::open_source(), and DataError if the source has no images.
  TableFiles(const std::filesystem::path& source, std::filesystem::path folder,
             std::uint64_t count);

  /// Number of images in a file with one copy.
  [[nodiscard]] std::uint64_t images() const { return samples_.size(); }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// The path of the file with `copies` copies of each image, whether it exists or not. The name
  /// depends on the source's path, size and modification time, and on the number of images.
  [[nodiscard]] std::filesystem::path path(const TableFile& file, int copies) const;
  /// Writes the file path(file, copies) if it does not exist. @throws IoError, and the exceptions
  /// of write_dataset().
  void write(const TableFile& file, int copies) const;

 private:
  std::filesystem::path folder_;
  std::unique_ptr<data::Source> source_;
  std::size_t image_ = 0;
  /// The index of the first integer field; the number of fields if there is none.
  std::size_t label_ = 0;
  std::vector<std::uint64_t> samples_;
  std::string digest_;
};

}  // namespace precast::tools
