#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/beton/reader.h"

namespace precast::test {

/// Reader limits that accept the files of with_small_pages().
inline constexpr data::BetonLimits kSmallPages{.min_page_bytes = 64};

/// Returns a copy of a `.beton` file with pages of the smallest size (a power of two, at least 64
/// bytes) into which every sample fits. The copy of a golden file of several MiB has some KiB, few
/// enough for fuzzing and for tests that change every byte.
/// @param checksums true: with checksums, as precast writes them; false: without, as FFCV does.
std::vector<std::byte> with_small_pages(std::span<const std::byte> file, bool checksums);

}  // namespace precast::test
