#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/beton/reader.h"

namespace precast::test {

/// Read what with_small_pages() makes with these.
inline constexpr data::BetonLimits kSmallPages{.min_page_bytes = 64};

/// The samples of a file laid out again in the smallest pages that hold one, of 64 bytes at least:
/// some KB in place of 4 MiB, for tests that try every byte and for fuzzing.
/// @param checksums with them, as precast writes them, or as FFCV writes: without.
std::vector<std::byte> with_small_pages(std::span<const std::byte> file, bool checksums);

}  // namespace precast::test
