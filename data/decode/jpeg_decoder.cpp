#include "data/decode/jpeg_decoder.h"

#include <optional>
#include <variant>

#include "data/decode/baseline_decoder.h"
#include "data/decode/libjpeg_decoder.h"
#include "framework/core/error.h"

namespace precast::data {

struct JpegDecoder::State {
  explicit State(const JpegOptions& chosen)
      : options(chosen),
        baseline(chosen.no_lanes ? LaneShape{} : lane_shape_of_cpu(), chosen.luma_only) {}

  JpegOptions options;
  BaselineDecoder baseline;
  LibjpegDecoder libjpeg;

  /// Returns the header if the JPEG is of the common kind, has this size, and has at most
  /// kMaxPixels pixels; otherwise std::nullopt.
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

  /// @param decode BaselineDecoder::decode or BaselineDecoder::decode_planes.
  template <typename Decode>
  DecodedPixels decode_by(Decode decode, std::span<const std::byte> jpeg, int height, int width,
                          const Rect& region, const JpegCheckpoints& checkpoints,
                          const CheckpointRequest& request) {
    require(region.row >= 0 && region.column >= 0 && region.height > 0 && region.width > 0 &&
                region.row + region.height <= height && region.column + region.width <= width,
            "the region is inside the image");
    if (!options.libjpeg_only) {
      if (const auto header = header_of(jpeg, height, width)) {
        const auto pixels = (baseline.*decode)(jpeg, *header, region, dct(), checkpoints, request);
        if (pixels) return *pixels;
      }
    }
    if (request.points != nullptr) request.points->clear();
    return libjpeg.decode(jpeg, height, width, region, dct(), options.luma_only);
  }
};

JpegDecoder::JpegDecoder(JpegOptions options) : state_(std::make_unique<State>(options)) {}
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;
JpegDecoder::~JpegDecoder() = default;

ImageView JpegDecoder::decode(std::span<const std::byte> jpeg, int height, int width,
                              const Rect& region, const JpegCheckpoints& checkpoints) {
  return std::get<ImageView>(
      state_->decode_by(&BaselineDecoder::decode, jpeg, height, width, region, checkpoints, {}));
}

ImageView JpegDecoder::decode(std::span<const std::byte> jpeg, int height, int width,
                              const Rect& region, std::size_t interval,
                              std::vector<std::uint64_t>& found) {
  require(interval > 0, "the distance between checkpoints is above 0");
  return std::get<ImageView>(state_->decode_by(&BaselineDecoder::decode, jpeg, height, width,
                                               region, {},
                                               {.interval = interval, .points = &found}));
}

DecodedPixels JpegDecoder::decode_planes(std::span<const std::byte> jpeg, int height, int width,
                                         const Rect& region, const JpegCheckpoints& checkpoints) {
  return state_->decode_by(&BaselineDecoder::decode_planes, jpeg, height, width, region,
                           checkpoints, {});
}

DecodedPixels JpegDecoder::decode_planes(std::span<const std::byte> jpeg, int height, int width,
                                         const Rect& region, std::size_t interval,
                                         std::vector<std::uint64_t>& found) {
  require(interval > 0, "the distance between checkpoints is above 0");
  return state_->decode_by(&BaselineDecoder::decode_planes, jpeg, height, width, region, {},
                           {.interval = interval, .points = &found});
}

bool JpegDecoder::is_intact(std::span<const std::byte> jpeg, int height, int width) {
  const auto header = State::header_of(jpeg, height, width);
  return header && state_->baseline.is_intact(jpeg, *header);
}

}  // namespace precast::data
