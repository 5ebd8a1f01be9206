#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/label_list.h"
#include "data/sources/source.h"

namespace precast::data {

/// Opens a folder that contains one folder of images per class (torchvision's ImageFolder; see
/// arrange_by_class), or images whose classes are in a separate list (arrange_by_list). Links are
/// followed. @throws IoError, DataError
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_folder(const std::filesystem::path& path,
                                                              const ImageListOptions& options);
[[nodiscard]] bool is_folder(const std::filesystem::path& path);

}  // namespace precast::data
