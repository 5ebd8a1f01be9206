#include "data/image/exif.h"

#include <cstdint>
#include <cstring>
#include <string_view>

namespace precast::data {
namespace {

constexpr std::string_view kJpegPrefix("Exif\0\0", 6);
constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3;
constexpr std::size_t kEntryBytes = 12;

bool begins_with(std::span<const std::byte> bytes, std::string_view start) {
  return bytes.size() >= start.size() && std::memcmp(bytes.data(), start.data(), start.size()) == 0;
}

/// Reads numbers in the block's byte order. Returns 0 past the end of the block.
class TiffReader {
 public:
  explicit TiffReader(std::span<const std::byte> tiff)
      : tiff_(tiff), big_endian_(begins_with(tiff, "MM")) {}

  [[nodiscard]] std::uint32_t number(std::size_t at, std::size_t bytes) const {
    if (at > tiff_.size() || tiff_.size() - at < bytes) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      const std::size_t index = big_endian_ ? i : bytes - 1 - i;
      value = value << 8 | std::to_integer<std::uint32_t>(tiff_[at + index]);
    }
    return value;
  }

 private:
  std::span<const std::byte> tiff_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::span<const std::byte> tiff) {
  if (begins_with(tiff, kJpegPrefix)) tiff = tiff.subspan(kJpegPrefix.size());
  if (!begins_with(tiff, "II") && !begins_with(tiff, "MM")) return 1;
  const TiffReader reader(tiff);
  const std::size_t directory = reader.number(4, 4);
  const std::uint32_t entries = reader.number(directory, 2);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (reader.number(entry, 2) != kOrientationTag) continue;
    const std::uint32_t value =
        reader.number(entry + 2, 2) == kShort ? reader.number(entry + 8, 2) : 0;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace precast::data
