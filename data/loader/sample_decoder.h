#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/decode/indexed_decoder.h"
#include "data/image/pixel_format.h"
#include "data/loader/pixel_steps.h"
#include "data/loader/sample_key.h"
#include "data/loader/stored_pixels.h"
#include "data/resample/resize.h"
#include "data/transforms/image_pipeline.h"

namespace precast::data {

struct ImageRecord;

/// Converts one stored image into the model's input: chooses the crop, decodes only the crop,
/// resizes and flips it in one step, applies the transforms, and converts type and layout. Keeps
/// its decompressor and scratch memory between calls: use one per thread and output.
class PRECAST_API SampleDecoder {
 public:
  /// Borrows the pipeline and the index, which must outlive the decoder. @param view see
  /// PixelSteps.
  SampleDecoder(const ImagePipeline& pipeline, std::uint64_t seed, std::string_view view = {},
                const JpegDecoding& jpeg = {})
      : pipeline_(pipeline), steps_(pipeline, seed, view), jpeg_(make_decoder(pipeline, jpeg)) {}

  /// @param out receives uint8 values. Their shape is what the transforms make of [image_size_px,
  /// image_size_px, channels of the pipeline].
  /// @throws DataError if the image is damaged.
  void decode(const ImageRecord& image, const SampleKey& key, int image_size_px, std::uint8_t* out);
  /// Decodes as above and converts to `format`, except that the pipeline sets the number of
  /// channels. @{
  void decode(const ImageRecord& image, const SampleKey& key, int image_size_px,
              const PixelFormat& format, std::byte* out);
  void decode(const StoredPixels& image, const SampleKey& key, int image_size_px,
              const PixelFormat& format, std::byte* out);
  /// @}

 private:
  static IndexedDecoder make_decoder(const ImagePipeline& pipeline, JpegDecoding jpeg);
  /// @param source the pixels of the crop.
  void finish(const DecodedPixels& source, const SampleKey& key, int image_size_px,
              const PixelFormat& format, std::byte* out);

  const ImagePipeline& pipeline_;
  PixelSteps steps_;
  IndexedDecoder jpeg_;
  Resizer resizer_;
  std::vector<std::uint8_t> pixels_;
  /// The RGB pixels of a crop whose stored pixels are not 8-bit RGB.
  std::vector<std::uint8_t> stored_;
};

/// Decodes a mask, and applies the crop, the flip and the geometric transforms of its image. Every
/// step uses nearest-neighbour sampling. Use one per thread and output.
class PRECAST_API MaskDecoder {
 public:
  /// Borrows `image`, the pipeline of the image. @param view the view of the image.
  MaskDecoder(const ImagePipeline& image, std::uint64_t seed, std::string_view view,
              std::uint8_t fill, const JpegDecoding& jpeg = {})
      : steps_(image, seed, view), fill_(fill), jpeg_(jpeg) {}

  /// Decodes a mask that is stored as an image. @param out [H, W, 3] uint8. @throws DataError if
  /// the mask is damaged.
  void decode(const ImageRecord& mask, const SampleKey& key, int image_size_px, std::uint8_t* out);
  /// Decodes a mask that is stored as [height, width] values. @param out [H, W] uint8.
  void decode(const std::uint8_t* mask, int height, int width, const SampleKey& key,
              int image_size_px, std::uint8_t* out);

 private:
  /// @param source the pixels of the crop.
  void finish(const ImageView& source, int channels, const SampleKey& key, int image_size_px,
              std::uint8_t* out);

  PixelSteps steps_;
  std::uint8_t fill_;
  IndexedDecoder jpeg_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace precast::data
