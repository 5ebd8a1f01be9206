#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/decode/scan_kernels.h"
#include "data/image/image.h"

namespace precast::data {

/// Decodes a region of any JPEG with libjpeg-turbo: only the needed columns are transformed, rows
/// above the region are skipped, and decoding stops at its last row. Fancy upsampling. The pixels
/// depend on nothing that was decoded before. Holds scratch memory: one a thread.
class LibjpegDecoder {
 public:
  LibjpegDecoder();
  LibjpegDecoder(LibjpegDecoder&&) noexcept;
  LibjpegDecoder& operator=(LibjpegDecoder&&) noexcept;
  ~LibjpegDecoder();

  /// As JpegDecoder::decode(), which see.
  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   JpegDct dct);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace precast::data
