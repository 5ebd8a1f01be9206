#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/sources/source.h"

namespace precast::data {

/// WebDataset shards (webdataset/webdataset): tar files in their order, or a folder of them in the
/// order of their names, read in place. Members with the same path up to the first dot of their
/// name are a sample, what follows tells the field:
///
/// | ending | field |
/// | --- | --- |
/// | jpg jpeg png webp ppm pgm | image, called `image` |
/// | cls | int, called `label` |
/// | index inx id count | int |
/// | json | json |
/// | npy | ndarray, of the first sample's shape and type |
/// | any other | bytes |
///
/// Fields without a name here are called as their ending (at most 16 characters of it); `image` and
/// `label` come first. Endings mean the same in capitals; names that begin with a dot are left out.
/// Every sample has what the first one has. @throws IoError; DataError naming
/// shard and sample
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_webdataset(
    const std::filesystem::path& path);
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_webdataset_shards(
    const std::vector<std::filesystem::path>& shards);
/// By the first members of the first shard.
[[nodiscard]] bool is_webdataset(const std::filesystem::path& path);

}  // namespace precast::data
