#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/label_list.h"
#include "data/sources/source.h"

namespace precast::data {

/// Opens an uncompressed tar file that contains class folders, one tar per class (such as
/// ILSVRC2012_img_train.tar), or images whose classes are in a separate list (such as
/// ILSVRC2012_img_val.tar; arrange_by_list). The file is read in place, without unpacking. Classes
/// and order are the same as for the unpacked folder (arrange_by_class), so both give the same
/// .beton file. @throws IoError; DataError for a compressed or damaged tar, absolute paths, paths
/// with `..`, and members that are neither files nor folders (links are neither).
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_tar(const std::filesystem::path& path,
                                                           const ImageListOptions& options);
[[nodiscard]] bool is_tar(const std::filesystem::path& path);

}  // namespace precast::data
