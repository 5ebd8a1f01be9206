#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/beton/reader.h"

namespace precast::test {

/// The reader limits for files that with_small_pages() makes.
inline constexpr data::BetonLimits kSmallPages{.min_page_bytes = 64};

/// Copies a `.beton` file, with the smallest pages into which each sample fits, at least 64 bytes.
/// The copy takes a few KB instead of 4 MiB. It is for fuzzing and for tests that change every
/// byte.
/// @param checksums whether to write checksums, as precast does, or none, as FFCV does.
std::vector<std::byte> with_small_pages(std::span<const std::byte> file, bool checksums);

}  // namespace precast::test
