#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/beton/reader.h"

namespace precast::test {

/// The limits with which files of with_small_pages() are read.
inline constexpr data::BetonLimits kSmallPages{.min_page_bytes = 64};

/// A copy of a file with the smallest pages into which a sample fits, at least 64 bytes: a few KB
/// instead of 4 MiB, for tests that change every byte and for fuzzing.
/// @param checksums whether to write checksums, as precast does, or none, as FFCV does.
std::vector<std::byte> with_small_pages(std::span<const std::byte> file, bool checksums);

}  // namespace precast::test
