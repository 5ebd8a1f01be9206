#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/beton/file_info.h"

namespace precast::test {

/// A `.beton` file of raw images, written by precast's writer. Sample i has fields
/// `image` (noise seeded with i), `label` = i % classes, or i * classes / samples if `sorted`, and
/// `weight` = i.
struct SyntheticBeton {
  std::uint64_t samples = 100;
  int width = 16;
  int height = 16;
  /// If not 0, sample i is growth * (i % 3) px wider and growth * (i % 5) px taller than `width` x
  /// `height`.
  int growth = 0;
  std::int64_t classes = 10;
  bool sorted = false;
  std::uint64_t page_bytes = std::uint64_t{1} << 21;
  /// Tests that change bytes of the file need a file without checksums.
  bool checksums = true;
};

void write_made_beton(const std::filesystem::path& path, const SyntheticBeton& made);

/// A `.beton` file of int fields, written by precast's writer.
struct IntBeton {
  std::vector<std::string> fields;
  /// One value per field for each sample.
  std::vector<std::vector<std::int64_t>> rows = {};
  data::FileInfo info = {};
  /// Whether each sample also has an `image` of 8 x 8 px, as its first field.
  bool images = false;
};

void write_int_beton(const std::filesystem::path& path, const IntBeton& made);

}  // namespace precast::test
