#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/source.h"

namespace precast::data {

/// The binary form of CIFAR-10 and CIFAR-100 (Krizhevsky, cs.toronto.edu/~kriz/cifar.html): records
/// of 1 label byte (CIFAR-100: coarse, then fine; the fine one is used) and 32 x 32 pixels, plane
/// by plane. @param path a folder (its training files, data_batch_*.bin or train.bin) or one .bin
/// file.
/// @throws IoError, DataError
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_cifar(const std::filesystem::path& path);
[[nodiscard]] bool is_cifar(const std::filesystem::path& path);

}  // namespace precast::data
