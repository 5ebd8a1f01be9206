#pragma once

#include <cstdint>
#include <filesystem>

#include "data/beton/reader.h"

namespace precast::tools {

/// The result of a pass that reads images without decoding them.
struct ReadPass {
  std::int64_t images = 0;
  std::uint64_t bytes = 0;
  /// The sum of all bytes. It is computed so that the compiler cannot remove the reads.
  std::uint64_t sum = 0;
};

/// Reads every byte of the first image field of each sample, on `threads` threads that take samples
/// in file order. @throws DataError if there is no image field, or if the file changes meanwhile.
[[nodiscard]] ReadPass read_all_images(const data::BetonReader& reader, int threads);

/// Asks the kernel to drop a file from the page cache. Pages that a process has mapped stay, and so
/// do the pages of files in a tmpfs. @throws IoError if it cannot be opened.
void drop_from_page_cache(const std::filesystem::path& path);

/// The share of a file that is in the page cache, 0 to 1. For a file that the caller neither owns
/// nor may write, Linux always reports 1. @throws IoError if it cannot be opened or mapped.
[[nodiscard]] double cached_share(const std::filesystem::path& path);

}  // namespace precast::tools
