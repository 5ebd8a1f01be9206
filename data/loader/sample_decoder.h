#pragma once

#include <cstddef>
#include <cstdint>

#include "data/decode/jpeg_decoder.h"
#include "data/loader/host_batch.h"
#include "data/resample/resize.h"
#include "data/transforms/image_pipeline.h"

namespace precast::data {

class BetonReader;
struct ImageRecord;

/// Names one sample of one pass; with the seed it fixes every random choice.
struct SamplePlace {
  std::uint64_t sample = 0;
  /// In the pass's global order.
  std::uint64_t position = 0;
  std::int64_t epoch = 0;
};

/// Turns one stored image into the pixels that the model sees: crop, decode of just the crop,
/// resize fused with flip. Keeps its decompressor and scratch memory between calls: one a thread.
class PRECAST_API SampleDecoder {
 public:
  /// Borrows both; they outlive the decoder.
  SampleDecoder(const ImagePipeline& pipeline, std::uint64_t seed)
      : pipeline_(pipeline), seed_(seed) {}

  /// @param out [image_size_px, image_size_px, 3] uint8 RGB.
  /// @throws DataError if the image is damaged.
  void decode(const ImageRecord& image, const SamplePlace& place, int image_size_px,
              std::uint8_t* out);
  /// The same, normalised: out is [image_size_px, image_size_px, 3] float32.
  void decode_normalized(const ImageRecord& image, const SamplePlace& place, int image_size_px,
                         const Normalize& normalize, float* out);

 private:
  void decode_to(const ImageRecord& image, const SamplePlace& place, int image_size_px,
                 const PixelFormat& format, std::byte* out);

  const ImagePipeline& pipeline_;
  std::uint64_t seed_;
  JpegDecoder jpeg_;
  Resizer resizer_;
};

}  // namespace precast::data
