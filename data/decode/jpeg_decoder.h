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
  /// Use only libjpeg-turbo, for comparison.
  bool libjpeg_only = false;
  /// Decode the parts of an image one after the other even if there are checkpoints, for
  /// comparison.
  bool no_lanes = false;
  /// Return the Y plane, as libjpeg does for JCS_GRAYSCALE, three times in each pixel. (For a JPEG
  /// that stores RGB: its luma.)
  bool luma_only = false;
};

/// Decodes a region of a JPEG. The common kind (baseline, 8 bits, grey or YCbCr 4:4:4, 4:2:2,
/// 4:2:0, one scan) is decoded by BaselineDecoder, which skips over everything outside the region;
/// all other kinds, and anything irregular, by libjpeg-turbo. The pixels are bitwise identical to
/// those of libjpeg-turbo's full decode with fancy upsampling, and so, with the fast DCT, to FFCV's
/// (TurboJPEG FASTDCT). Grey images become RGB. The pixels do not depend on what was decoded
/// before. Holds scratch memory: use one decoder per thread.
class PRECAST_API JpegDecoder {
 public:
  explicit JpegDecoder(JpegOptions options = {});
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;
  ~JpegDecoder();

  /// @param height,width the size that the dataset states.
  /// @param region       inside height x width, not empty.
  /// @param checkpoints  of this JPEG, or none.
  /// @return the region's pixels, valid until the next call.
  /// @throws DataError if the bytes are not a JPEG of that size, are damaged (including damage for
  /// which libjpeg only warns, such as a truncated JPEG), or are crafted to cost far more
  /// time or memory than their size suggests: above kMaxPixels, a progressive JPEG of more than 256
  /// MiB of coefficients (89 megapixels in 4:2:0) or 200 scans, arithmetic coding. Data below the
  /// region is not checked. After an exception, the decoder can still be used.
  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   const JpegCheckpoints& checkpoints = {});
  /// Decodes as above, and also finds the checkpoints, one every `interval` MCUs.
  /// @param found overwritten; empty for an image that libjpeg has to decode or that is damaged
  /// below the region.
  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   std::size_t interval, std::vector<std::uint64_t>& found);

  /// The pixels of decode() as planes, for a resize that reads planes. Images that libjpeg-turbo
  /// decodes stay interleaved, because separating the planes takes longer than a resize of planes
  /// saves.
  DecodedPixels decode_planes(std::span<const std::byte> jpeg, int height, int width,
                              const Rect& region, const JpegCheckpoints& checkpoints = {});
  /// decode_planes() that also finds the checkpoints, as decode() does.
  DecodedPixels decode_planes(std::span<const std::byte> jpeg, int height, int width,
                              const Rect& region, std::size_t interval,
                              std::vector<std::uint64_t>& found);

  /// Whether a JPEG of the common kind has that size and decodes to its end without a warning.
  /// Produces no pixels, and so takes a fraction of the time of decode(). Also false for every
  /// other kind of JPEG: use decode() to check those.
  [[nodiscard]] bool in_order(std::span<const std::byte> jpeg, int height, int width);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace precast::data
