#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "data/image/image.h"
#include "data/image/pixel_format.h"
#include "data/resample/kernels.h"

namespace precast::data {

/// Receives the rows of a resize in order. Rows that need no conversion are written directly to the
/// output if possible.
class RowSink {
 public:
  struct Memory {
    std::vector<std::uint8_t> row;
    /// Finished values that are not in the output yet.
    std::vector<std::byte> pending;
  };

  RowSink(int height, int width, const PixelFormat& format, Memory& memory, std::byte* out)
      : height_(height),
        width_(width),
        row_bytes_(static_cast<std::size_t>(width) * 3),
        plain_(format.type == ElementType::u8 && !format.channels_first),
        streamed_(format.streamed && !format.channels_first &&
                  reinterpret_cast<std::uintptr_t>(out) % kCacheLine == 0),
        format_(format),
        memory_(memory),
        out_(out) {}

  /// Returns memory for row y, with room for `bytes` bytes. This may be more than a row: bytes past
  /// the row are overwritten later or dropped.
  [[nodiscard]] std::uint8_t* row(int y, std::size_t bytes) {
    if (plain_ && streamed_) return reinterpret_cast<std::uint8_t*>(pending_room(bytes));
    const std::size_t at = static_cast<std::size_t>(y) * row_bytes_;
    const std::size_t end = static_cast<std::size_t>(height_) * row_bytes_;
    in_place_ = plain_ && at + bytes <= end;
    if (in_place_) return reinterpret_cast<std::uint8_t*>(out_) + at;
    if (memory_.row.size() < bytes) memory_.row.resize(bytes);
    return memory_.row.data();
  }

  /// Outputs row y, which must be the row for which row() was called last.
  void finish(int y) {
    if (in_place_) return;
    const ImageView view{memory_.row.data(), 1, width_, static_cast<std::ptrdiff_t>(row_bytes_)};
    if (!streamed_) return write_rows(view, y, height_, format_, out_);
    const std::size_t bytes = format_.image_bytes(1, width_);
    if (!plain_) write_rows(view, 0, 1, format_, pending_room(bytes));
    pending_bytes_ += bytes;
    if (pending_bytes_ >= kPendingBytes || y == height_ - 1) stream(y == height_ - 1);
  }

 private:
  /// Fits easily into the first-level cache.
  static constexpr std::size_t kPendingBytes = 4096;

  std::byte* pending_room(std::size_t bytes) {
    if (memory_.pending.size() < pending_bytes_ + bytes)
      memory_.pending.resize(pending_bytes_ + bytes);
    return memory_.pending.data() + pending_bytes_;
  }

  /// Writes the complete cache lines of `pending`. @param last whether to also write an incomplete
  /// line.
  void stream(bool last) {
    const std::byte* from = memory_.pending.data();
    const std::size_t lines = pending_bytes_ / kCacheLine;
    stream_lines(from, lines, out_);
    from += lines * kCacheLine;
    out_ += lines * kCacheLine;
    pending_bytes_ %= kCacheLine;
    std::memcpy(last ? out_ : memory_.pending.data(), from, pending_bytes_);
  }

  int height_, width_;
  std::size_t row_bytes_;
  bool plain_;
  bool streamed_;
  bool in_place_ = false;
  std::size_t pending_bytes_ = 0;
  const PixelFormat& format_;
  Memory& memory_;
  std::byte* out_;
};

}  // namespace precast::data
