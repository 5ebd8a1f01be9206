#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/beton/reader.h"
#include "data/decode/jpeg_decoder.h"
#include "data/write/field.h"

namespace precast::data {

/// Finds the checkpoints of stored images for the JPEG index, and counts the JPEGs with and without
/// checkpoints. Use one object per thread.
class CheckpointFinder {
 public:
  /// @param interval MCUs from one checkpoint to the next.
  explicit CheckpointFinder(std::size_t interval) : interval_(interval) {}

  /// @param points is overwritten; empty if the image is stored as pixels, if libjpeg has to decode
  /// the JPEG, if a checkpoint does not fit into 64 bits (ScanCheckpoint::packed()), or if the JPEG
  /// is damaged. @throws DataError if the top-left pixel cannot be decoded (JpegDecoder::decode()).
  /// Damage below the rows that this pixel needs causes no exception.
  void find(const ImageRecord& image, std::vector<std::uint64_t>& points);
  /// Finds the checkpoints of an image before it is written to a file. Does not throw for a damaged
  /// JPEG; the code that decodes the JPEG later reports the error.
  void find(const EncodedValue& image, std::vector<std::uint64_t>& points);

  [[nodiscard]] std::uint64_t jpegs() const { return jpegs_; }
  /// Number of JPEGs for which find() succeeded without checkpoints.
  [[nodiscard]] std::uint64_t unindexed() const { return unindexed_; }
  /// Number of JPEGs with checkpoints.
  [[nodiscard]] std::uint64_t indexed() const { return indexed_; }

 private:
  std::size_t interval_;
  JpegDecoder decoder_;
  std::uint64_t jpegs_ = 0, unindexed_ = 0, indexed_ = 0;
};

}  // namespace precast::data
