#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/source.h"

namespace precast::data {

/// Opens CIFAR-10 or CIFAR-100 in binary form (Krizhevsky, cs.toronto.edu/~kriz/cifar.html): each
/// record has 1 label byte (CIFAR-100: a coarse and a fine label byte; the fine label is used) and
/// 32 x 32 RGB pixels, plane by plane. The class names come from `batches.meta.txt` (CIFAR-100:
/// `fine_label_names.txt`) in the same folder. If that file is missing or has the wrong number of
/// names, the classes are called `0`, `1` and so on.
/// @param path one .bin file, or a folder with training files (data_batch_*.bin or train.bin),
/// whose test files are not read. @throws IoError, DataError
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_cifar(const std::filesystem::path& path);
[[nodiscard]] bool is_cifar(const std::filesystem::path& path);

}  // namespace precast::data
