#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/decode/checkpoints.h"
#include "data/image/image.h"
#include "framework/core/export.h"

namespace precast::data {

struct JpegOptions {
  /// The accurate inverse DCT (libjpeg's `islow`, Pillow's and torchvision's) in place of the fast
  /// one, which is FFCV's.
  bool accurate_dct = false;
  /// Only libjpeg-turbo, for comparison.
  bool libjpeg_only = false;
};

/// Decodes a region of a JPEG. The common kind (baseline, 8 bits, grey or YCbCr 4:4:4, 4:2:2,
/// 4:2:0, one scan) goes through BaselineDecoder, which reads over what lies outside the region;
/// every other, and whatever is not in order, through libjpeg-turbo. The pixels are bit for bit
/// those of libjpeg-turbo's full decode with fancy upsampling, so with the fast DCT those of FFCV
/// (TurboJPEG FASTDCT). Grey images come out as RGB. The pixels depend on nothing that was
/// decoded before. Holds scratch memory: one decoder a thread.
class PRECAST_API JpegDecoder {
 public:
  explicit JpegDecoder(JpegOptions options = {});
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;
  ~JpegDecoder();

  /// @param height,width the size that the dataset promises.
  /// @param region       inside height x width, not empty.
  /// @param checkpoints  of this JPEG, or none.
  /// @return the region's pixels, valid until the next call.
  /// @throws DataError if the bytes are not a JPEG of that size, are damaged (libjpeg's warnings
  /// count: a JPEG cut short is only a warning to it), or are made to cost far more time or memory
  /// than their size: above kMaxPixels, a progressive JPEG of more than 256 MiB of coefficients (89
  /// megapixels in 4:2:0) or 200 scans, arithmetic coding. What lies below the region is not looked
  /// at. The decoder stays usable.
  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   const JpegCheckpoints& checkpoints = {});
  /// The same, and on the way finds the checkpoints, every `interval` MCUs.
  /// @param found overwritten; empty for an image that libjpeg has to decode or that is damaged
  /// below the region.
  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   std::size_t interval, std::vector<std::uint64_t>& found);

  /// Whether a JPEG of the common kind has that size and decodes without a complaint to its end.
  /// Makes no pixels, and so takes a fraction of decode(). False for every other kind, too: only
  /// decode() tells of those.
  [[nodiscard]] bool in_order(std::span<const std::byte> jpeg, int height, int width);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace precast::data
