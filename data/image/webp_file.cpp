#include <fmt/core.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "data/image/exif.h"
#include "data/image/image_file.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

struct FreeDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};

[[noreturn]] void throw_damaged() {
  throw DataError("image: expected an intact WebP file, got a damaged one");
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

/// Whether a frame's bitstream has the width and height that the frame's header states.
bool has_size_of(const WebPIterator& frame) {
  WebPBitstreamFeatures found;
  return WebPGetFeatures(frame.fragment.bytes, frame.fragment.size, &found) == VP8_STATUS_OK &&
         found.width == frame.width && found.height == frame.height;
}

/// Decodes the first frame of an animation, without alpha. The rest of the canvas becomes black.
void decode_first_frame(const WebPDemuxer* demuxer, Image& out) {
  WebPIterator frame;
  bool decoded = WebPDemuxGetFrame(demuxer, 1, &frame) != 0;
  if (decoded) {
    std::ranges::fill(out.pixels, std::uint8_t{0});
    const auto stride = static_cast<std::size_t>(out.width) * 3;
    const std::size_t begin = static_cast<std::size_t>(frame.y_offset) * stride +
                              static_cast<std::size_t>(frame.x_offset) * 3;
    decoded =
        frame.x_offset >= 0 && frame.y_offset >= 0 && frame.x_offset + frame.width <= out.width &&
        frame.y_offset + frame.height <= out.height && has_size_of(frame) &&
        WebPDecodeRGBInto(frame.fragment.bytes, frame.fragment.size, out.pixels.data() + begin,
                          out.pixels.size() - begin, static_cast<int>(stride)) != nullptr;
  }
  WebPDemuxReleaseIterator(&frame);
  if (!decoded) throw_damaged();
}

}  // namespace

ImageFileFacts decode_webp_file(std::span<const std::byte> file, Image& out) {
  const WebPData data = data_of(file);
  const std::unique_ptr<WebPDemuxer, FreeDemuxer> demuxer(WebPDemux(&data));
  if (demuxer == nullptr) throw_damaged();
  ImageFileFacts facts;
  facts.format = ImageFormat::webp;
  facts.orientation = orientation_of(demuxer.get());
  facts.alpha = (WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0;
  allocate_pixels(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
                  WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT), out);
  if ((WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ANIMATION_FLAG) != 0) {
    decode_first_frame(demuxer.get(), out);
    return facts;
  }
  WebPBitstreamFeatures still;
  if (WebPGetFeatures(data.bytes, data.size, &still) != VP8_STATUS_OK || still.width != out.width ||
      still.height != out.height ||
      WebPDecodeRGBInto(data.bytes, data.size, out.pixels.data(), out.pixels.size(),
                        3 * out.width) == nullptr)
    throw_damaged();
  return facts;
}

}  // namespace precast::data
