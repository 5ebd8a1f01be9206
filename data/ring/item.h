#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/loader/host_batch.h"
#include "data/ring/layout.h"
#include "data/ring/ring_position.h"
#include "framework/core/export.h"

namespace precast::data {

/// The rules of RING.md for one output: whether a name is valid, and the names of the dtypes. @{
[[nodiscard]] PRECAST_API bool is_output_name(std::string_view name);
[[nodiscard]] PRECAST_API std::optional<ElementType> ring_dtype(std::string_view name);
[[nodiscard]] PRECAST_API std::string_view ring_dtype_name(ElementType type);
/// @}

/// The item that one slot describes.
struct RingItem {
  RingKind kind = RingKind::batch;
  RingPosition position = {};
  /// Views of data in the segment.
  std::vector<HostTensor> fields = {};
  /// One id per sample.
  std::vector<std::uint64_t> sample_ids = {};
};

/// Reads a header that other processes may change at any time: copies it once and checks the copy.
/// @param memory the mapped segment, aligned to 8 bytes. @throws RingError if a value is invalid or
/// describes a range outside `memory`.
[[nodiscard]] PRECAST_API RingHeader read_ring_header(std::span<const std::byte> memory);

/// Returns a copy of the description (RING.md); empty if there is none. @param header the result of
/// read_ring_header().
[[nodiscard]] PRECAST_API std::string read_ring_description(std::span<const std::byte> memory,
                                                            const RingHeader& header);

/// Copies a slot once and checks the copy. The returned fields point into the data area of
/// `memory`.
/// @param header the result of read_ring_header(). @throws RingError if the slot describes an item
/// other than `sequence`, a value is invalid, or a range is outside the data area.
[[nodiscard]] PRECAST_API RingItem read_ring_item(std::span<const std::byte> memory,
                                                  const RingHeader& header, std::uint64_t sequence);

/// Writes the slot of `sequence`. The item's data must already be in `memory`; the ids are copied
/// to `ids_offset`. @throws RingError for an item that a slot cannot describe.
PRECAST_API void write_ring_item(std::span<std::byte> memory, const RingHeader& header,
                                 std::uint64_t sequence, const RingItem& item,
                                 std::uint64_t ids_offset);

}  // namespace precast::data
