#pragma once

#include <cstdint>

#include "data/beton/reader.h"

namespace precast::tools {

/// The result of a pass that reads images without decoding them.
struct ReadPass {
  std::int64_t images = 0;
  std::uint64_t bytes = 0;
  /// The sum of the values of all bytes. It is computed so that the compiler cannot remove the
  /// reads.
  std::uint64_t sum = 0;
};

/// Reads every byte of the first image field of each sample, on `threads` threads that take samples
/// in file order. @throws DataError if there is no image field, or if the file changes meanwhile.
[[nodiscard]] ReadPass read_all_images(const data::BetonReader& reader, int threads);

}  // namespace precast::tools
