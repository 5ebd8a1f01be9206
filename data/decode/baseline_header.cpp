#include "data/decode/baseline_header.h"

#include <algorithm>
#include <string_view>

namespace precast::data {
namespace {

using Bytes = std::span<const std::uint8_t>;

enum Marker : std::uint8_t {
  kStartOfFrame0 = 0xC0,
  kHuffmanTables = 0xC4,
  kStartOfImage = 0xD8,
  kStartOfScan = 0xDA,
  kQuantizers = 0xDB,
  kRestartInterval = 0xDD,
  kApplication0 = 0xE0,
  kApplication14 = 0xEE,
  kApplication15 = 0xEF,
  kComment = 0xFE,
};

constexpr int kTables = 4;
/// For smaller images, libjpeg may use simple instead of fancy upsampling.
constexpr int kMinSidePx = 8;

int big_endian_16(Bytes bytes, std::size_t at) {
  return bytes[at] << 8 | bytes[at + 1];
}

bool starts_with(Bytes segment, std::string_view text) {
  return segment.size() >= text.size() &&
         std::equal(text.begin(), text.end(), segment.begin(),
                    [](char c, std::uint8_t byte) { return static_cast<std::uint8_t>(c) == byte; });
}

/// Reads one segment after the other. Every read_* function returns false for files that libjpeg
/// has to decode or reject.
class HeaderParser {
 public:
  explicit HeaderParser(Bytes jpeg) : jpeg_(jpeg) {}

  bool parse(BaselineHeader& header) {
    if (jpeg_.size() < 4 || jpeg_[0] != 0xFF || jpeg_[1] != kStartOfImage) return false;
    std::size_t at = 2;
    while (at + 4 <= jpeg_.size() && jpeg_[at] == 0xFF) {
      const std::uint8_t marker = jpeg_[at + 1];
      if (marker == 0xFF) {  // a fill byte
        ++at;
        continue;
      }
      const auto length = static_cast<std::size_t>(big_endian_16(jpeg_, at + 2));
      if (length < 2 || jpeg_.size() - at - 2 < length) return false;
      const Bytes segment = jpeg_.subspan(at + 4, length - 2);
      at += 2 + length;
      if (marker == kStartOfScan) {
        header.scan_begin = at;
        return read_scan(segment, header) && (header.components == 1 || is_ycc());
      }
      if (!read_segment(marker, segment, header)) return false;
    }
    return false;
  }

 private:
  bool read_segment(std::uint8_t marker, Bytes segment, BaselineHeader& header) {
    switch (marker) {
      case kStartOfFrame0:
        return read_frame(segment, header);
      case kHuffmanTables:
        return read_huffman(segment);
      case kQuantizers:
        return read_quantizers(segment);
      case kRestartInterval:
        return segment.size() == 2 && big_endian_16(segment, 0) == 0;
      case kApplication0:
        if (segment.size() < 14 || !starts_with(segment, std::string_view("JFIF\0", 5)))
          return true;
        has_jfif_ = true;
        return segment[5] == 1;  // for other revisions libjpeg warns
      case kApplication14:
        if (segment.size() >= 12 && starts_with(segment, "Adobe")) adobe_transform_ = segment[11];
        return true;
      default:
        return marker == kComment || (marker > kApplication0 && marker <= kApplication15);
    }
  }

  bool read_quantizers(Bytes segment) {
    while (!segment.empty()) {
      // The upper 4 bits are 1 for 16-bit numbers, which baseline files do not have.
      if (segment.size() < 65 || segment[0] >= kTables) return false;
      auto& table = quantizers_[segment[0]].emplace();
      for (std::size_t k = 0; k < kZigzag.size(); ++k) table[kZigzag[k]] = segment[1 + k];
      segment = segment.subspan(65);
    }
    return true;
  }

  bool read_huffman(Bytes segment) {
    while (!segment.empty()) {
      if (segment.size() < 17) return false;
      const int kind = segment[0] >> 4, table = segment[0] & 15;
      std::size_t symbols = 0;
      for (std::size_t length = 1; length <= 16; ++length) symbols += segment[length];
      if (kind > 1 || table >= kTables || symbols > 256 || segment.size() - 17 < symbols)
        return false;
      huffman_[kind][table] = HuffmanSpec{segment.subspan(1, 16), segment.subspan(17, symbols)};
      segment = segment.subspan(17 + symbols);
    }
    return true;
  }

  bool read_frame(Bytes segment, BaselineHeader& header) {
    if (frame_seen_ || segment.size() < 6 || segment[0] != 8) return false;
    frame_seen_ = true;
    header.height = big_endian_16(segment, 1);
    header.width = big_endian_16(segment, 3);
    header.components = segment[5];
    if (header.components != 1 && header.components != 3) return false;
    if (segment.size() != 6 + 3 * static_cast<std::size_t>(header.components)) return false;
    if (header.height < kMinSidePx || header.width < kMinSidePx) return false;
    for (std::size_t c = 0; c < static_cast<std::size_t>(header.components); ++c) {
      ids_[c] = segment[6 + 3 * c];
      const int sampling = segment[7 + 3 * c];
      quantizer_of_[c] = segment[8 + 3 * c];
      if (c == 0) {
        header.luma_columns = sampling >> 4;
        header.luma_rows = sampling & 15;
      } else if (sampling != 0x11) {
        return false;
      }
    }
    return has_common_sampling(header);
  }

  static bool has_common_sampling(const BaselineHeader& header) {
    if (header.luma_columns == 1) return header.luma_rows == 1;
    return header.components == 3 && header.luma_columns == 2 &&
           (header.luma_rows == 1 || header.luma_rows == 2);
  }

  bool read_scan(Bytes segment, BaselineHeader& header) {
    const auto components = static_cast<std::size_t>(header.components);
    if (!frame_seen_ || segment.size() != 4 + 2 * components || segment[0] != components)
      return false;
    for (std::size_t c = 0; c < components; ++c) {
      const int dc = segment[2 + 2 * c] >> 4, ac = segment[2 + 2 * c] & 15;
      const int quantizer = quantizer_of_[c];
      if (segment[1 + 2 * c] != ids_[c] || dc >= kTables || ac >= kTables || quantizer >= kTables)
        return false;
      if (!huffman_[0][dc] || !huffman_[1][ac] || !quantizers_[quantizer]) return false;
      header.component[c] = {*quantizers_[quantizer], *huffman_[0][dc], *huffman_[1][ac]};
    }
    const Bytes spectrum = segment.last(3);
    return spectrum[0] == 0 && spectrum[1] == 63 && spectrum[2] == 0;
  }

  /// Whether three components are YCbCr by libjpeg's rules: a JFIF marker means that they are;
  /// without it, Adobe's marker decides or, if there is none, the component ids. Returns false for
  /// equal ids, so that libjpeg decodes the image.
  [[nodiscard]] bool is_ycc() const {
    if (ids_[0] == ids_[1] || ids_[1] == ids_[2] || ids_[0] == ids_[2]) return false;
    if (has_jfif_) return true;
    if (adobe_transform_) return *adobe_transform_ == 1;
    return ids_ == std::array<std::uint8_t, 3>{1, 2, 3};
  }

  Bytes jpeg_;
  bool has_jfif_ = false;
  bool frame_seen_ = false;
  std::optional<std::uint8_t> adobe_transform_;
  std::optional<std::array<std::uint8_t, 64>> quantizers_[kTables];
  std::optional<HuffmanSpec> huffman_[2][kTables];
  std::array<std::uint8_t, 3> ids_{};
  std::array<std::uint8_t, 3> quantizer_of_{};
};

}  // namespace

std::optional<BaselineHeader> parse_baseline_header(std::span<const std::byte> jpeg) {
  BaselineHeader header;
  const Bytes bytes(reinterpret_cast<const std::uint8_t*>(jpeg.data()), jpeg.size());
  if (!HeaderParser(bytes).parse(header)) return std::nullopt;
  return header;
}

}  // namespace precast::data
