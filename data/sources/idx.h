#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/source.h"

namespace precast::data {

/// Opens a pair of IDX files in the format of MNIST (yann.lecun.com/exdb/mnist), plain or .gz:
/// big-endian magic 0x803 and [n, rows, columns] for grey images, 0x801 and [n] for labels. Grey
/// images become RGB. @param path the file of the images. The file of the labels is next to it, and
/// its name contains `labels` and `idx1` instead of `images` and `idx3`. @throws IoError, DataError
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_idx(const std::filesystem::path& path);
[[nodiscard]] bool is_idx(const std::filesystem::path& path);

}  // namespace precast::data
