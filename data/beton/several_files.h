#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/beton/reader.h"
#include "framework/core/export.h"

namespace precast::data {

/// Checks that two files have the same fields. @throws DataError naming both files and the first
/// difference in names, types, dtypes, shapes, arguments or number of fields.
PRECAST_API void check_same_fields(const BetonReader& first, const BetonReader& other);

/// The arguments of a field's descriptor without kSumsFlag.
[[nodiscard]] PRECAST_API std::vector<std::byte> arguments_without_sums(const BetonReader& file,
                                                                        std::size_t field);

/// The page size for a copy of these files: the largest page size among them, or a larger power of
/// two (up to kMaxPageBytes) if a sample would not fit because precast stores an empty value as one
/// byte.
[[nodiscard]] PRECAST_API std::uint64_t copy_page_bytes(
    const std::vector<const BetonReader*>& files);

/// The page of each sample in the file that `precast merge` would write from the reader's files
/// without further options. With these pages, quasi_random forms the same groups of samples for
/// several files as for the merged file. [size()], ascending; a sample without values in pages has
/// the page of the preceding sample.
[[nodiscard]] PRECAST_API std::vector<std::uint64_t> merged_pages(const BetonReader& reader);

}  // namespace precast::data
