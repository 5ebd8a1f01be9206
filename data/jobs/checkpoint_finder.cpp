#include "data/jobs/checkpoint_finder.h"

#include "framework/core/error.h"

namespace precast::data {

void CheckpointFinder::find(const ImageRecord& image, std::vector<std::uint64_t>& points) {
  points.clear();
  if (image.mode != ImageMode::jpg) return;
  ++jpegs_;
  try {
    // Decodes only one pixel; the decoder skips the other data, but finds the checkpoints in it.
    decoder_.decode(image.bytes, image.height, image.width, {0, 0, 1, 1}, interval_, points);
  } catch (const DataError&) {
    points.clear();
    throw;
  }
  ++(points.empty() ? unindexed_ : indexed_);
}

void CheckpointFinder::find(const EncodedValue& image, std::vector<std::uint64_t>& points) {
  const std::byte* const metadata = image.metadata.data();
  const ImageRecord record{.mode = static_cast<ImageMode>(metadata[0]),
                           .width = load<std::uint16_t>(metadata + kImageWidthAt),
                           .height = load<std::uint16_t>(metadata + kImageHeightAt),
                           .bytes = image.blob};
  try {
    find(record, points);
  } catch (const DataError&) {
  }
}

}  // namespace precast::data
