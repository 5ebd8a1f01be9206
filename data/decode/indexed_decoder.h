#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "data/decode/jpeg_decoder.h"
#include "data/decode/jpeg_index.h"

namespace precast::data {

/// How the JPEGs of a dataset are decoded.
struct JpegDecoding {
  JpegOptions options;
  /// The index to use and to fill; null if there is none. Borrowed.
  JpegIndex* index = nullptr;
};

/// A JpegDecoder that uses a dataset's index and, when it decodes a sample for the first time, adds
/// the sample's checkpoints, if the index accepts them. Use one decoder per thread; all of them
/// share the index.
class IndexedDecoder {
 public:
  explicit IndexedDecoder(const JpegDecoding& decoding)
      : decoder_(decoding.options), index_(decoding.index) {}

  /// See JpegDecoder::decode(). @param sample the sample's id.
  ImageView decode(std::span<const std::byte> jpeg, std::uint64_t sample, int height, int width,
                   const Rect& region) {
    return with_index(sample, [&](auto&&... index) {
      return decoder_.decode(jpeg, height, width, region, index...);
    });
  }
  /// See JpegDecoder::decode_planes().
  DecodedPixels decode_planes(std::span<const std::byte> jpeg, std::uint64_t sample, int height,
                              int width, const Rect& region) {
    return with_index(sample, [&](auto&&... index) {
      return decoder_.decode_planes(jpeg, height, width, region, index...);
    });
  }

 private:
  /// Calls `decode` with the checkpoints from the index. If the index needs the sample's
  /// checkpoints, makes `decode` find them and adds them to the index.
  template <typename Decode>
  std::invoke_result_t<const Decode&> with_index(std::uint64_t sample, const Decode& decode) {
    if (index_ == nullptr) return decode();
    if (!index_->accepts(sample)) return decode(index_->find(sample));
    const auto pixels = decode(index_->interval(sample), found_);
    index_->add(sample, found_);
    return pixels;
  }

  JpegDecoder decoder_;
  JpegIndex* index_;
  std::vector<std::uint64_t> found_;
};

}  // namespace precast::data
