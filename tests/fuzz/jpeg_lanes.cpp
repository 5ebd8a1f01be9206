#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "data/decode/baseline_decoder.h"
#include "data/decode/jpeg_decoder.h"
#include "framework/core/error.h"
#include "tests/data/decode/pixel_copies.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

using data::BaselineDecoder;
using data::BaselineHeader;
using data::JpegDct;
using data::LaneShape;
using data::Rect;
using test::copy_of;

using Pixels = std::vector<std::uint8_t>;

/// Larger images would take more than a second, which is too slow for fuzzing.
constexpr int kMaxPx = 256;

/// Takes numbers from the end of the input: bytes after the end of a JPEG have no other meaning.
class Choices {
 public:
  explicit Choices(Input input) : input_(input) {}
  /// A number below `bound`.
  std::size_t below(std::size_t bound) {
    std::uint16_t number = 0;
    if (input_.size() >= sizeof number) {
      std::memcpy(&number, input_.last(sizeof number).data(), sizeof number);
      input_ = input_.first(input_.size() - sizeof number);
    }
    return number % bound;
  }

 private:
  Input input_;
};

std::optional<Pixels> decode(BaselineDecoder& decoder, Input jpeg, const BaselineHeader& header,
                             const Rect& region, const data::JpegCheckpoints& checkpoints) {
  const auto pixels = decoder.decode(jpeg, header, region, JpegDct::ifast, checkpoints, {});
  return pixels ? std::optional(copy_of(*pixels)) : std::nullopt;
}

/// The complete image as libjpeg decodes it, or nothing if libjpeg rejects it.
std::optional<Pixels> decode_by_libjpeg(Input jpeg, const BaselineHeader& header) {
  static data::JpegDecoder libjpeg({.libjpeg_only = true});
  try {
    return copy_of(
        libjpeg.decode(jpeg, header.height, header.width, {0, 0, header.height, header.width}));
  } catch (const DataError& error) {
    reached(error.what());
    return std::nullopt;
  }
}

Rect chosen_region(Choices& choices, const BaselineHeader& header) {
  const auto below = [&](int bound) {
    return static_cast<int>(choices.below(static_cast<std::size_t>(bound)));
  };
  if (below(2) == 0) return {0, 0, header.height, header.width};
  Rect region{below(header.height), below(header.width), 0, 0};
  region.height = 1 + below(header.height - region.row);
  region.width = 1 + below(header.width - region.column);
  return region;
}

}  // namespace

void jpeg_lanes(Input input) {
  const auto header = data::parse_baseline_header(input);
  if (!header || header->height > kMaxPx || header->width > kMaxPx) return;
  Choices choices(input);
  const LaneShape shape{1 + choices.below(LaneShape::kMaxLanes),
                        10 + static_cast<int>(choices.below(3))};
  const std::size_t interval = 1 + choices.below(9);
  const Rect region = chosen_region(choices, *header);

  static BaselineDecoder serial{LaneShape{}};
  const Rect whole{0, 0, header->height, header->width};
  std::vector<std::uint64_t> points;
  const auto all = serial.decode(input, *header, whole, JpegDct::ifast, {}, {interval, &points});
  if (!all || points.empty()) return;
  const auto expected = decode(serial, input, *header, region, {});
  BaselineDecoder lanes(shape);
  for (int time = 0; time < 3; ++time) {
    require(decode(lanes, input, *header, region, {interval, points}) == expected,
            "lanes give the pixels of serial decoding");
  }

  // Changes bytes after their checkpoints were found.
  std::vector<std::byte> changed(input.begin(), input.end());
  for (std::size_t edits = choices.below(4); edits > 0; --edits) {
    const std::size_t at = header->scan_begin + choices.below(changed.size() - header->scan_begin);
    changed[at] ^= static_cast<std::byte>(1 + choices.below(255));
  }
  const auto pixels = decode(lanes, changed, *header, whole, {interval, points});
  require(!pixels || pixels == decode_by_libjpeg(changed, *header),
          "an image that is decoded in lanes equals libjpeg's");

  // Uses wrong checkpoints.
  std::vector<std::uint64_t> wrong = points;
  for (std::size_t edits = choices.below(4); edits > 0; --edits) {
    std::uint64_t& point = wrong[choices.below(wrong.size())];
    point += std::uint64_t{choices.below(65536)} << choices.below(48);
  }
  static_cast<void>(decode(lanes, changed, *header, region, {interval, wrong}));
  require(decode(lanes, input, *header, region, {interval, points}) == expected,
          "after wrong checkpoints, lanes decode the image correctly");
}

}  // namespace precast::fuzz
