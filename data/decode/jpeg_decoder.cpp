#include "data/decode/jpeg_decoder.h"

#include <optional>

#include "data/decode/baseline_decoder.h"
#include "data/decode/libjpeg_decoder.h"
#include "data/decode/scratch.h"
#include "framework/core/error.h"

namespace precast::data {

struct JpegDecoder::State {
  explicit State(const JpegOptions& chosen)
      : options(chosen),
        baseline(chosen.no_lanes ? LaneShape{} : lane_shape_of_cpu(), chosen.luma_only) {}

  JpegOptions options;
  BaselineDecoder baseline;
  LibjpegDecoder libjpeg;

  /// Of the common kind and that size.
  static std::optional<BaselineHeader> header_of(std::span<const std::byte> jpeg, int height,
                                                 int width) {
    const auto header = parse_baseline_header(jpeg);
    const std::uint64_t size =
        static_cast<std::uint64_t>(height) * static_cast<std::uint64_t>(width);
    if (!header || header->height != height || header->width != width || size > kMaxPixels)
      return std::nullopt;
    return header;
  }

  [[nodiscard]] JpegDct dct() const {
    return options.accurate_dct ? JpegDct::islow : JpegDct::ifast;
  }

  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   const JpegCheckpoints& checkpoints, const CheckpointRequest& request) {
    require_inside(region, height, width);
    if (!options.libjpeg_only) {
      if (const auto header = header_of(jpeg, height, width)) {
        const auto pixels = baseline.decode(jpeg, *header, region, dct(), checkpoints, request);
        if (pixels) return *pixels;
      }
    }
    if (request.points != nullptr) request.points->clear();
    return libjpeg.decode(jpeg, height, width, region, dct(), options.luma_only);
  }

  PlanarView decode_planes(std::span<const std::byte> jpeg, int height, int width,
                           const Rect& region, const JpegCheckpoints& checkpoints,
                           const CheckpointRequest& request) {
    require_inside(region, height, width);
    if (!options.libjpeg_only) {
      if (const auto header = header_of(jpeg, height, width)) {
        const auto pixels =
            baseline.decode_planes(jpeg, *header, region, dct(), checkpoints, request);
        if (pixels) return *pixels;
      }
    }
    if (request.points != nullptr) request.points->clear();
    return separate(libjpeg.decode(jpeg, height, width, region, dct(), options.luma_only));
  }

  static void require_inside(const Rect& region, int height, int width) {
    require(region.row >= 0 && region.column >= 0 && region.height > 0 && region.width > 0 &&
                region.row + region.height <= height && region.column + region.width <= width,
            "the region lies inside the image");
  }

  /// Of what libjpeg decoded, which is rare.
  PlanarView separate(const ImageView& image) {
    const auto width = static_cast<std::size_t>(image.width);
    const std::size_t plane = static_cast<std::size_t>(image.height) * width;
    std::uint8_t* const out = planes.at_least(3 * plane);
    for (int y = 0; y < image.height; ++y) {
      const std::uint8_t* const row = image.row(y);
      std::uint8_t* const to = out + static_cast<std::size_t>(y) * width;
      for (std::size_t i = 0; i < 3 * width; ++i) to[i % 3 * plane + i / 3] = row[i];
    }
    return {{out, out + plane, out + 2 * plane}, image.height, image.width, image.width};
  }

  Scratch planes;
};

JpegDecoder::JpegDecoder(JpegOptions options) : state_(std::make_unique<State>(options)) {}
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;
JpegDecoder::~JpegDecoder() = default;

ImageView JpegDecoder::decode(std::span<const std::byte> jpeg, int height, int width,
                              const Rect& region, const JpegCheckpoints& checkpoints) {
  return state_->decode(jpeg, height, width, region, checkpoints, {});
}

PlanarView JpegDecoder::decode_planes(std::span<const std::byte> jpeg, int height, int width,
                                      const Rect& region, const JpegCheckpoints& checkpoints) {
  return state_->decode_planes(jpeg, height, width, region, checkpoints, {});
}

PlanarView JpegDecoder::decode_planes(std::span<const std::byte> jpeg, int height, int width,
                                      const Rect& region, std::size_t interval,
                                      std::vector<std::uint64_t>& found) {
  require(interval > 0, "checkpoints have a distance");
  return state_->decode_planes(jpeg, height, width, region, {},
                               {.interval = interval, .points = &found});
}

bool JpegDecoder::in_order(std::span<const std::byte> jpeg, int height, int width) {
  const auto header = State::header_of(jpeg, height, width);
  return header && state_->baseline.in_order(jpeg, *header);
}

ImageView JpegDecoder::decode(std::span<const std::byte> jpeg, int height, int width,
                              const Rect& region, std::size_t interval,
                              std::vector<std::uint64_t>& found) {
  require(interval > 0, "checkpoints have a distance");
  return state_->decode(jpeg, height, width, region, {}, {.interval = interval, .points = &found});
}

}  // namespace precast::data
