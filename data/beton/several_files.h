#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/beton/reader.h"
#include "framework/core/export.h"

namespace precast::data {

/// @throws DataError naming the first difference in names, types, dtypes, shapes or arguments, and
/// both files.
PRECAST_API void check_same_fields(const BetonReader& first, const BetonReader& other);

/// The arguments of a field's descriptor without the mark of a file that has checksums.
[[nodiscard]] PRECAST_API std::vector<std::byte> arguments_without_sums(const BetonReader& file,
                                                                        std::size_t field);

/// A page size into which every sample of these files fits: their own page size, or a larger one if
/// empty values, which take a byte in files of precast, do not fit into it.
[[nodiscard]] PRECAST_API std::uint64_t copy_page_bytes(
    const std::vector<const BetonReader*>& files);

/// The page of each sample in the file that `precast merge` would write from the reader's files
/// without further options. With these pages, quasi_random forms the same groups of samples for
/// several files as for the merged file. [size()], ascending; a sample without values in pages has
/// the page of the preceding sample.
[[nodiscard]] PRECAST_API std::vector<std::uint64_t> merged_pages(const BetonReader& reader);

}  // namespace precast::data
