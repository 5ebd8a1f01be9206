#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "data/image/image.h"
#include "framework/core/export.h"

namespace precast::data {

/// Encodes baseline JPEGs like OpenCV's imencode, which FFCV uses: JFIF, 4:2:0, accurate integer
/// DCT, default Huffman tables (libjpeg-turbo). Keeps its codec between calls, so use one object
/// per thread.
class PRECAST_API JpegEncoder {
 public:
  JpegEncoder();
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;
  ~JpegEncoder();

  /// @param image   sides of 1 to 65500 px.
  /// @param quality 1 to 100, libjpeg's scale.
  /// @param out     overwritten with a JPEG file; its memory is reused.
  /// @throws DataError with libjpeg's message.
  void encode(const ImageView& image, int quality, std::vector<std::byte>& out);

 private:
  struct Codec;
  std::unique_ptr<Codec> codec_;
};

}  // namespace precast::data
