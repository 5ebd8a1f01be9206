#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/decode/scan_kernels.h"
#include "data/image/image.h"

namespace precast::data {

/// Decodes a region of a JPEG (except CMYK and arithmetic coding) with libjpeg-turbo: transforms
/// only the needed columns (all columns if libjpeg smooths block borders), skips the rows above the
/// region, and stops at the region's last row. Uses fancy upsampling. The pixels do not depend on
/// what was decoded before. Keeps scratch memory, so use one decoder per thread.
class LibjpegDecoder {
 public:
  LibjpegDecoder();
  LibjpegDecoder(LibjpegDecoder&&) noexcept;
  LibjpegDecoder& operator=(LibjpegDecoder&&) noexcept;
  ~LibjpegDecoder();

  /// See JpegDecoder::decode(). @param luma_only see JpegOptions.
  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   JpegDct dct, bool luma_only = false);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace precast::data
