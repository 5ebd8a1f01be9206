#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/sources/source.h"

namespace precast::data {

/// Opens WebDataset shards (webdataset/webdataset): tar files in the given order, or a folder of
/// them in the order of their names, read in place. Adjacent members with the same path up to the
/// first dot of their name form a sample; the rest of the name, its ending, determines the field:
///
/// | ending | field |
/// | --- | --- |
/// | jpg jpeg png webp ppm pgm | image; the first one without a dot, else the first, is `image` |
/// | cls | int, called `label` |
/// | index inx id count | int |
/// | json | json |
/// | npy | ndarray, of the first sample's shape and type |
/// | any other | bytes |
///
/// Images and ints may have a longer ending, such as `seg.png`. Fields for which the table gives no
/// name are named after their ending (at most its first 16 bytes); `image` and `label` come first.
/// Endings are case-insensitive; names without a dot, and names that begin with one, are skipped.
/// Every sample must have the fields of the first one, but the ending of an image may be any image
/// ending; members for which the first sample has no field are left out. @throws IoError; DataError
/// naming shard and sample
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_webdataset(
    const std::filesystem::path& path);
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_webdataset_shards(
    const std::vector<std::filesystem::path>& shards);
/// Judges by the first members of the first shard; false for a folder with subfolders.
[[nodiscard]] bool is_webdataset(const std::filesystem::path& path);

}  // namespace precast::data
