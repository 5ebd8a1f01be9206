#pragma once

#include <cstdint>
#include <vector>

#include "data/decode/jpeg_decoder.h"
#include "data/decode/jpeg_index.h"

namespace precast::data {

/// How the JPEGs of a dataset are decoded.
struct JpegDecoding {
  JpegOptions options;
  /// Read and filled; null: no index. Borrowed.
  JpegIndex* index = nullptr;
};

/// A JpegDecoder that uses a dataset's index and adds to it what it finds on the first visit of a
/// sample. One per thread; the index is shared.
class IndexedDecoder {
 public:
  explicit IndexedDecoder(const JpegDecoding& decoding)
      : decoder_(decoding.options), index_(decoding.index) {}

  /// See JpegDecoder::decode(). @param sample the sample's number in the index.
  ImageView decode(std::span<const std::byte> jpeg, std::uint64_t sample, int height, int width,
                   const Rect& region) {
    if (index_ == nullptr) return decoder_.decode(jpeg, height, width, region);
    if (!index_->wants(sample))
      return decoder_.decode(jpeg, height, width, region, index_->find(sample));
    const ImageView pixels =
        decoder_.decode(jpeg, height, width, region, index_->interval(sample), found_);
    index_->add(sample, found_);
    return pixels;
  }

 private:
  JpegDecoder decoder_;
  JpegIndex* index_;
  std::vector<std::uint64_t> found_;
};

}  // namespace precast::data
