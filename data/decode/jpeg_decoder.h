#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/image.h"
#include "framework/core/export.h"

namespace precast::data {

/// Decodes a region of a JPEG with libjpeg-turbo: only the needed columns are transformed, rows
/// above the region are skipped, and decoding stops at its last row. Fast integer DCT and fancy
/// upsampling, so the pixels are bit for bit those of FFCV's full decode (TurboJPEG FASTDCT). Grey
/// images come out as RGB. The pixels depend on nothing that was decoded before. Holds scratch
/// memory: one decoder a thread.
class PRECAST_API JpegDecoder {
 public:
  JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;
  ~JpegDecoder();

  /// @param height,width the size that the dataset promises.
  /// @param region       inside height x width, not empty.
  /// @return the region's pixels, valid until the next call.
  /// @throws DataError if the bytes are not a JPEG of that size, are damaged (libjpeg's warnings
  /// count: a JPEG cut short is only a warning to it), or are made to cost far more time or memory
  /// than their size: above kMaxPixels, a progressive JPEG of more than 256 MiB of coefficients (89
  /// megapixels in 4:2:0) or 200 scans, arithmetic coding. The decoder stays usable.
  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace precast::data
