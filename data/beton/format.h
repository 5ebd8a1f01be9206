#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace precast::data {

/// The binary layout of FFCV's .beton version 2 (libffcv/ffcv, ffcv/types.py and ffcv/fields):
/// header, field descriptors, metadata records, pages of blobs, allocation table. data/FORMAT.md
/// describes it, and calls a blob a large value. All numbers are little-endian and most are
/// unaligned, so they are copied with load() and store(), never cast.
static_assert(std::endian::native == std::endian::little,
              "the .beton code copies little-endian numbers as they are");

inline constexpr std::uint16_t kBetonVersion = 2;
inline constexpr std::size_t kHeaderBytes = 24;
inline constexpr std::size_t kFieldNameBytes = 16;
inline constexpr std::size_t kFieldArgumentsBytes = 1024;
inline constexpr std::size_t kFieldBytes = 1 + kFieldNameBytes + kFieldArgumentsBytes;
inline constexpr std::size_t kAllocationBytes = 24;
/// A count above this means a damaged header, not a dataset.
inline constexpr std::size_t kMaxFields = 4096;
inline constexpr std::uint64_t kMinPageBytes = std::uint64_t{1} << 21;
inline constexpr std::uint64_t kDefaultPageBytes = std::uint64_t{1} << 23;
inline constexpr std::uint64_t kMaxPageBytes = std::uint64_t{1} << 31;

/// Byte 0 of a field descriptor.
enum class FieldType : std::uint8_t {
  floating = 0,
  integer = 1,
  image = 2,
  bytes = 3,
  ndarray = 4,
  json = 5,
  tensor = 6,
  custom = 255,
};

/// Byte 0 of an image's metadata.
enum class ImageMode : std::uint8_t { jpg = 0, raw = 1 };

/// The first 24 bytes of a file.
struct BetonHeader {
  std::uint16_t version = kBetonVersion;
  std::uint16_t num_fields = 0;
  std::uint32_t page_bytes = 0;
  std::uint64_t num_samples = 0;
  /// From the start of the file; 0 until the writer has finished.
  std::uint64_t table_offset = 0;
};

/// Offsets in the 13 bytes of an image's metadata: mode u8, width u16, height u16, pointer u64.
inline constexpr std::size_t kImageWidthAt = 1;
inline constexpr std::size_t kImageHeightAt = 3;
inline constexpr std::size_t kImagePointerAt = 5;
inline constexpr std::size_t kImageMetadataBytes = 13;
inline constexpr std::uint16_t kMaxSidePx = 65535;

/// Offsets in the arguments of an ndarray or tensor field: shape u64[32], then the length and the
/// text of numpy's dtype description.
inline constexpr std::size_t kMaxDimensions = 32;
inline constexpr std::size_t kDtypeLengthAt = 8 * kMaxDimensions;
inline constexpr std::size_t kDtypeTextAt = kDtypeLengthAt + 8;

template <typename T>
[[nodiscard]] T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace precast::data
