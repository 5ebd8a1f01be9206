#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "framework/core/export.h"

namespace precast::data {

/// A position in a JPEG's scan from which decoding can continue: the first bit of an MCU, and the
/// preceding DC coefficients, because the scan stores only differences from them (as in Android's
/// BitmapRegionDecoder and OpenSlide).
struct PRECAST_API ScanCheckpoint {
  /// Counted from the first entropy-coded byte, including stuffed zeros.
  std::uint64_t bit = 0;
  std::array<int, 3> dc{};

  /// The checkpoint in 64 bits. Empty if its numbers do not fit: in scans above 32 MiB, or with
  /// coefficients that no encoder produces.
  [[nodiscard]] std::optional<std::uint64_t> packed() const;
  [[nodiscard]] static ScanCheckpoint unpacked(std::uint64_t packed);
};

/// Number of MCUs from one checkpoint to the next. With this number, the checkpoints of an image of
/// 512 px take about 700 bytes.
inline constexpr std::size_t kDefaultCheckpointInterval = 8;
inline constexpr std::size_t kMaxCheckpointInterval = 65536;

/// The checkpoints of one JPEG: one every `interval` MCUs, counted from the start of each row of
/// MCUs. A view, which does not own the checkpoints. Empty if they are not known.
struct JpegCheckpoints {
  std::size_t interval = 0;
  std::span<const std::uint64_t> points;

  [[nodiscard]] bool empty() const { return points.empty(); }
};

/// Number of checkpoints in a row of `mcus` MCUs.
[[nodiscard]] constexpr std::size_t checkpoints_in_row(std::size_t mcus, std::size_t interval) {
  return (mcus + interval - 1) / interval;
}

}  // namespace precast::data
