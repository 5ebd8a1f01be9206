// Decodes 100,000 crops of photographs with precast's decoder, every second one with checkpoints,
// and compares each with the same part of libjpeg-turbo's full image. PRECAST_JPEGS=FILE.beton
// replaces FFCV's golden photographs; PRECAST_CROPS sets the number of crops.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "data/beton/reader.h"
#include "data/decode/jpeg_decoder.h"
#include "data/transforms/random_resized_crop.h"
#include "framework/core/rng.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

bool equal(const ImageView& a, const ImageView& b) {
  if (a.height != b.height || a.width != b.width) return false;
  for (int y = 0; y < a.height; ++y) {
    if (!std::equal(a.row(y), a.row(y) + std::ptrdiff_t{3} * a.width, b.row(y))) return false;
  }
  return true;
}

/// Returns, in turn, a crop as in training, an arbitrary rectangle, and a rectangle that touches an
/// edge.
Rect choose(int height, int width, std::uint64_t trial) {
  RandomStream random(5, 0, trial, RandomUse::test);
  if (trial % 3 == 0) return RandomResizedCrop().choose(height, width, random);
  const auto draw = [&](int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
  };
  Rect region{draw(height), draw(width), 0, 0};
  region.height = 1 + draw(height - region.row);
  region.width = 1 + draw(width - region.column);
  if (trial % 3 == 1) return region;
  switch (trial % 4) {
    case 0:
      return {0, region.column, region.height, region.width};
    case 1:
      return {region.row, 0, region.height, region.width};
    case 2:
      return {region.row, region.column, height - region.row, region.width};
    default:
      return {region.row, region.column, region.height, width - region.column};
  }
}

TEST(JpegCropsTest, AreTheSamePartOfTheWholeImage) {
  const char* const path = std::getenv("PRECAST_JPEGS");
  const char* const count = std::getenv("PRECAST_CROPS");
  const std::uint64_t crops = count != nullptr ? std::strtoull(count, nullptr, 10) : 100'000;
  const test::TemporaryFolder folder;
  if (path == nullptr) test::write_bytes(folder / "x.beton", test::golden_beton("img_jpg_w3"));
  const BetonReader reader(path != nullptr ? std::filesystem::path(path) : folder / "x.beton");
  const std::size_t field = reader.first_field(FieldType::image);

  JpegDecoder own, libjpeg({.libjpeg_only = true});
  const std::uint64_t per_image = (crops + reader.size() - 1) / reader.size();
  std::vector<std::uint64_t> points;
  std::uint64_t compared = 0;
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    const ImageRecord image = reader.image(sample, field);
    if (image.mode != ImageMode::jpg) continue;
    // This view stays valid, because `libjpeg` decodes nothing else until the next sample.
    const ImageView whole =
        libjpeg.decode(image.bytes, image.height, image.width, {0, 0, image.height, image.width});
    own.decode(image.bytes, image.height, image.width, {0, 0, 1, 1}, 8, points);
    ASSERT_FALSE(points.empty()) << "sample " << sample;
    for (std::uint64_t trial = 0; trial < per_image; ++trial, ++compared) {
      const Rect region = choose(image.height, image.width, sample * per_image + trial);
      const ImageView part{whole.row(region.row) + std::ptrdiff_t{3} * region.column, region.height,
                           region.width, whole.stride};
      JpegCheckpoints checkpoints;
      if (trial % 2 == 0) checkpoints = {8, points};
      ASSERT_TRUE(
          equal(own.decode(image.bytes, image.height, image.width, region, checkpoints), part))
          << "sample " << sample << ", " << region.row << "," << region.column << " "
          << region.height << "x" << region.width;
    }
  }
  EXPECT_GE(compared, crops);
}

}  // namespace
}  // namespace precast::data
