#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace precast::data {

/// The structures of RING.md, version 1. @{
static_assert(std::endian::native == std::endian::little, "the ring is little-endian");
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share these atomics");

/// The bytes "PCSTRING".
inline constexpr std::uint64_t kRingMagic = 0x474E495254534350;
inline constexpr std::uint32_t kRingVersion = 1;
inline constexpr std::uint32_t kMaxRingSlots = 1024;
inline constexpr std::uint32_t kMaxRingConsumers = 64;
inline constexpr std::uint32_t kMaxRingOutputs = 64;
inline constexpr std::uint32_t kMaxRingDimensions = 8;
/// The largest size of a dimension, and the largest number of samples in a batch.
inline constexpr std::uint64_t kMaxRingDimensionSize = std::uint64_t{1} << 40;
/// Alignment of every offset, in bytes.
inline constexpr std::uint64_t kRingAlignment = 64;
/// Maximum size of the description, in bytes.
inline constexpr std::uint64_t kMaxRingDescriptionBytes = 65536;
/// The largest page size, in bytes. The control area, to which consumers write, shares no page of
/// this size with other data.
inline constexpr std::uint64_t kRingPageBytes = 65536;

/// The header without `published`; constant once consumers can see it.
struct RingHeader {
  std::uint64_t magic = kRingMagic;
  std::uint32_t version = kRingVersion;
  std::uint32_t slots = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t cells = 0;
  std::uint32_t reserved = 0;
  std::uint64_t control_offset = 0;
  std::uint64_t slots_offset = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t description_offset = 0;
  std::uint64_t description_bytes = 0;

  [[nodiscard]] std::uint64_t control_bytes() const;
};
inline constexpr std::uint64_t kRingPublishedAt = 128;
inline constexpr std::uint64_t kRingHeaderBytes = 192;

/// Offsets in the control area.
inline constexpr std::uint64_t kToConsumersAt = 0;
inline constexpr std::uint64_t kToProducerAt = 64;
inline constexpr std::uint64_t kCellsAt = 128;
inline constexpr std::uint64_t kCellBytes = 64;

inline std::uint64_t RingHeader::control_bytes() const {
  return kCellsAt + kCellBytes * cells;
}

enum class RingKind : std::uint32_t { batch = 1, end_of_pass = 2 };

/// The first 64 bytes of a slot.
struct RingSlot {
  std::uint64_t sequence = 0;
  std::uint32_t kind = 0;
  std::uint32_t outputs = 0;
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;
  std::uint64_t samples = 0;
  std::uint64_t ids_offset = 0;
  std::uint64_t reserved[2] = {};
};
static_assert(sizeof(RingSlot) == 64);

/// One output of a batch.
struct RingOutput {
  char name[64] = {};
  char dtype[8] = {};
  std::uint32_t dimensions = 0;
  std::uint32_t reserved = 0;
  std::uint64_t shape[kMaxRingDimensions] = {};
  std::uint64_t strides[kMaxRingDimensions] = {};
  std::uint64_t offset = 0;
  std::uint64_t reserved2[5] = {};
};
static_assert(sizeof(RingOutput) == 256);

/// A consumer's only message.
struct RingJoinMessage {
  std::uint64_t magic = kRingMagic;
  std::uint32_t version = kRingVersion;
  std::uint32_t mode = 0;
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;
};

/// A message of the producer. In an end message, the text follows.
struct RingReplyMessage {
  std::uint64_t magic = kRingMagic;
  std::uint32_t version = kRingVersion;
  std::uint32_t kind = 0;
  std::uint32_t cell = 0;
  std::uint32_t exit_code = 0;
  std::uint64_t sequence = 0;
};
inline constexpr std::size_t kMaxRingMessageBytes = 2048;
/// @}

}  // namespace precast::data
