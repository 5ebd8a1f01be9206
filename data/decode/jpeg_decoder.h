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
  /// Use the accurate inverse DCT (libjpeg's `islow`, as in Pillow and torchvision) instead of the
  /// fast one (as in FFCV).
  bool accurate_dct = false;
  /// Use only libjpeg-turbo; for comparison.
  bool libjpeg_only = false;
  /// Decode the parts of an image one after the other instead of in lanes, even if there are
  /// checkpoints; for comparison.
  bool no_lanes = false;
  /// Return luma as all three values of each pixel. It is the Y plane, as libjpeg returns it for
  /// JCS_GRAYSCALE. For a JPEG that stores RGB, it is computed from RGB.
  bool luma_only = false;
};

/// Decodes a region of a JPEG. The common kind (baseline, 8 bits, grey or YCbCr 4:4:4, 4:2:2,
/// 4:2:0, one scan) is decoded by BaselineDecoder, which skips over everything outside the region.
/// libjpeg-turbo decodes or rejects all other kinds (it rejects CMYK) and all irregular files. The
/// pixels are bitwise identical to a full decode by libjpeg-turbo with fancy upsampling. With the
/// fast DCT, they are therefore identical to FFCV's (TurboJPEG FASTDCT). Grey images become RGB.
/// The pixels do not depend on what was decoded before. Keeps scratch memory, so use one decoder
/// per thread.
class PRECAST_API JpegDecoder {
 public:
  explicit JpegDecoder(JpegOptions options = {});
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;
  ~JpegDecoder();

  /// @param height,width the size according to the dataset.
  /// @param region       inside height x width, not empty.
  /// @param checkpoints the checkpoints of this JPEG; may be empty.
  /// @return the region's pixels, valid until the next call.
  /// @throws DataError if the bytes are not a JPEG of that size, or are damaged (including damage
  /// for which libjpeg only warns, such as truncation). Also throws it if decoding could take far
  /// more time or memory than the JPEG's size suggests: for more than kMaxPixels pixels, for
  /// arithmetic coding, and for a JPEG of several scans (such as a progressive one) with more than
  /// 200 scans or 256 MiB of coefficients (89 megapixels in 4:2:0). Data below the region, and data
  /// that is skipped with the help of checkpoints, are not checked. After an exception, the decoder
  /// can still be used.
  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   const JpegCheckpoints& checkpoints = {});
  /// Decodes as above, and also finds the checkpoints, one every `interval` MCUs.
  /// @param found overwritten; empty for an image that libjpeg has to decode or that is damaged
  /// below the region, or if a checkpoint does not fit into 64 bits.
  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   std::size_t interval, std::vector<std::uint64_t>& found);

  /// Like decode(), but returns planes, for a resize that reads planes. Images that libjpeg-turbo
  /// decodes stay interleaved, because splitting them into planes would take more time than the
  /// faster resize saves.
  DecodedPixels decode_planes(std::span<const std::byte> jpeg, int height, int width,
                              const Rect& region, const JpegCheckpoints& checkpoints = {});
  /// decode_planes() that also finds the checkpoints, as decode() does.
  DecodedPixels decode_planes(std::span<const std::byte> jpeg, int height, int width,
                              const Rect& region, std::size_t interval,
                              std::vector<std::uint64_t>& found);

  /// Whether a JPEG is of the common kind, has this size, and would decode to its end without a
  /// warning. Produces no pixels, so it takes a fraction of the time of decode(). To check the
  /// other kinds of JPEG, for which it returns false, use decode().
  [[nodiscard]] bool is_intact(std::span<const std::byte> jpeg, int height, int width);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace precast::data
