#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;
struct LoaderOptions;
struct Pipeline;

/// The memory that a loader takes, known before it starts, in bytes.
struct PRECAST_API MemoryPlan {
  /// The file, in the page cache: shared by all processes of a host, and given back by the kernel
  /// when memory is short. 0 with on_disk access.
  std::uint64_t mapped = 0;
  /// Sizes of blobs and, with on_disk access, metadata.
  std::uint64_t metadata = 0;
  /// Pages of the process cache, at most.
  std::uint64_t cache = 0;
  /// Batches in the ring and one with the consumer.
  std::uint64_t batches = 0;
  /// Of them, for values whose size nobody bounds (pad_to): each has room for the largest in the
  /// file.
  std::uint64_t unbounded = 0;
  /// Whether these are page-locked.
  bool batches_locked = false;
  /// Decoders' scratch memory, over all workers, estimated from the largest image.
  std::uint64_t decoders = 0;
  /// Which sample stands where, and with on_disk access which read serves it.
  std::uint64_t order = 0;
  /// Where Huffman codes begin inside JPEGs, if that is kept.
  std::uint64_t index = 0;

  /// All that is this process's own: without `mapped`.
  [[nodiscard]] std::uint64_t own() const {
    return metadata + cache + batches + decoders + order + index;
  }
  /// One line.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] nlohmann::ordered_json json() const;
};

/// What a loader of these options takes for passes with images of that size.
[[nodiscard]] PRECAST_API MemoryPlan plan_memory(const BetonReader& reader,
                                                 const Pipeline& pipeline,
                                                 const LoaderOptions& options,
                                                 std::int64_t image_size_px, int world = 1);

}  // namespace precast::data
