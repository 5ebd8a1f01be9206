#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/sources/source.h"

namespace precast::data {

/// Opens WebDataset shards (webdataset/webdataset): tar files in the given order, or a folder of
/// them in the order of their names, read in place. Members with the same path up to the first dot
/// of their name are a sample; the rest of the name determines the field:
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
/// Fields for which the table gives no name are named after their ending (at most 16 characters of
/// it); `image` and `label` come first. Endings are case-insensitive; names that begin with a dot
/// are skipped. Every sample has the fields of the first one; an image may have a different one of
/// the endings of images. @throws IoError; DataError naming shard and sample
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_webdataset(
    const std::filesystem::path& path);
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_webdataset_shards(
    const std::vector<std::filesystem::path>& shards);
/// Determined by the first members of the first shard.
[[nodiscard]] bool is_webdataset(const std::filesystem::path& path);

}  // namespace precast::data
