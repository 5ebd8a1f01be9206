#include <fmt/core.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "data/sources/exif.h"
#include "data/sources/image_file.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

struct FreeDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
struct FreeAnimation {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

[[noreturn]] void refuse() {
  throw DataError("image: expected a whole WebP file, got a damaged one");
}

WebPData data_of(std::span<const std::byte> file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

int orientation_of(const WebPDemuxer* demuxer) {
  WebPChunkIterator chunk;
  int orientation = 1;
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk) != 0)
    orientation = exif_orientation(std::as_bytes(std::span(chunk.chunk.bytes, chunk.chunk.size)));
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

/// The canvas after an animation's first frame, its alpha dropped.
void decode_first_frame(std::span<const std::byte> file, Image& out) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0) refuse();
  options.color_mode = MODE_RGBA;
  const WebPData data = data_of(file);
  const std::unique_ptr<WebPAnimDecoder, FreeAnimation> decoder(
      WebPAnimDecoderNew(&data, &options));
  std::uint8_t* canvas = nullptr;
  int end_ms = 0;
  if (decoder == nullptr || WebPAnimDecoderGetNext(decoder.get(), &canvas, &end_ms) == 0) refuse();
  for (std::size_t p = 0; p < out.pixels.size() / 3; ++p)
    std::memcpy(out.pixels.data() + 3 * p, canvas + 4 * p, 3);
}

}  // namespace

ImageFileFacts decode_webp_file(std::span<const std::byte> file, Image& out) {
  const WebPData data = data_of(file);
  const std::unique_ptr<WebPDemuxer, FreeDemuxer> demuxer(WebPDemux(&data));
  if (demuxer == nullptr) refuse();
  ImageFileFacts facts;
  facts.format = ImageFormat::webp;
  facts.orientation = orientation_of(demuxer.get());
  facts.alpha = (WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0;
  allocate_pixels(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
                  WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT), out);
  if ((WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ANIMATION_FLAG) != 0) {
    decode_first_frame(file, out);
    return facts;
  }
  WebPBitstreamFeatures still;
  if (WebPGetFeatures(data.bytes, data.size, &still) != VP8_STATUS_OK || still.width != out.width ||
      still.height != out.height ||
      WebPDecodeRGBInto(data.bytes, data.size, out.pixels.data(), out.pixels.size(),
                        3 * out.width) == nullptr)
    refuse();
  return facts;
}

}  // namespace precast::data
