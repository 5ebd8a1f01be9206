#pragma once

#include <cstdint>
#include <filesystem>

namespace precast::test {

/// A `.beton` file of raw images of one size, written by precast's writer. Sample i has fields
/// `image` (noise keyed by i), `label` = i % classes, or i * classes / samples if `sorted`, and
/// `weight` = i.
struct MadeBeton {
  std::uint64_t samples = 100;
  int width = 16;
  int height = 16;
  std::int64_t classes = 10;
  bool sorted = false;
  std::uint64_t page_bytes = std::uint64_t{1} << 21;
  /// Tests that change bytes of the file need a file without checksums.
  bool checksums = true;
};

void write_made_beton(const std::filesystem::path& path, const MadeBeton& made);

}  // namespace precast::test
