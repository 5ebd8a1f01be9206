#pragma once

#include <cstdint>

namespace precast {

/// A request to a source of batches: for one pass over the data, or for the rest of an interrupted
/// pass. Torch-free.
struct EpochRequest {
  std::int64_t epoch = 0;
  /// Batches already consumed; the pass starts after them.
  std::int64_t first_batch = 0;
  /// Side of the square images, in px.
  std::int64_t image_size_px = 224;
  /// The sample at position p of the pass's global order belongs to rank p % world.
  int rank = 0;
  int world = 1;

  friend bool operator==(const EpochRequest&, const EpochRequest&) = default;
};

}  // namespace precast
