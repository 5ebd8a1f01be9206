#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;
struct LoaderOptions;
struct Pipeline;

/// The memory that a loader needs, in bytes, computed before it starts.
struct PRECAST_API MemoryPlan {
  /// The file, in the page cache: shared by all processes on a host, and reclaimed by the kernel
  /// when memory is short. 0 with on_disk access.
  std::uint64_t mapped = 0;
  /// The reader's own memory: sizes of blobs, and metadata and checksums that are not mapped.
  std::uint64_t metadata = 0;
  /// Upper limit of the memory for pages, with on_disk access.
  std::uint64_t cache = 0;
  /// The batches that are loaded ahead, and one that the consumer holds.
  std::uint64_t batches = 0;
  /// The part of `batches` for values that vary in size and have no pad_to: each row has room for
  /// the largest value in the file.
  std::uint64_t unbounded = 0;
  /// Whether the batches are page-locked.
  bool batches_locked = false;
  /// Scratch memory of the decoders of all workers, estimated from the largest image.
  std::uint64_t decoders = 0;
  /// The order of the samples and, with on_disk access, the plan of the reads.
  std::uint64_t order = 0;
  /// The JPEG index, if there is one.
  std::uint64_t index = 0;
  /// The stored images, in the GPU's memory, with LoaderOptions::plan_images.
  std::uint64_t device = 0;

  /// The sum of all parts except `mapped` and `device`. The ranks on a host may share `index`; the
  /// other parts of the sum belong to this process alone.
  [[nodiscard]] std::uint64_t own() const {
    return metadata + cache + batches + decoders + order + index;
  }
  /// A summary in one line.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] nlohmann::ordered_json json() const;
};

/// Computes the memory that a loader with these options needs for passes with images of this size.
/// @throws the errors of outputs_of_loader() and BatchLayout
[[nodiscard]] PRECAST_API MemoryPlan plan_memory(const BetonReader& reader,
                                                 const Pipeline& pipeline,
                                                 const LoaderOptions& options,
                                                 std::int64_t image_size_px, int world = 1);

}  // namespace precast::data
