#include <gtest/gtest.h>

#include <cmath>

#include "data/transforms/center_crop.h"
#include "data/transforms/fixed_crop.h"
#include "data/transforms/random_resized_crop.h"
#include "framework/core/rng.h"

namespace precast::data {
namespace {

bool inside(const Rect& region, int height, int width) {
  return region.row >= 0 && region.column >= 0 && region.height > 0 && region.width > 0 &&
         region.row + region.height <= height && region.column + region.width <= width;
}

TEST(RandomResizedCropTest, StaysInsideImagesOfAnyShape) {
  const RandomResizedCrop crop;
  for (const auto& [height, width] :
       {std::pair{1, 1}, {1, 500}, {500, 1}, {3, 2}, {375, 500}, {512, 340}}) {
    for (std::uint64_t position = 0; position < 500; ++position) {
      RandomStream random(9, 0, position, RandomUse::crop);
      ASSERT_TRUE(inside(crop.choose(height, width, random), height, width))
          << height << "x" << width;
    }
  }
}

TEST(RandomResizedCropTest, AreaAndRatioFollowTheirRanges) {
  const RandomResizedCrop crop;
  double area_sum = 0;
  constexpr int kDraws = 4000;
  for (std::uint64_t position = 0; position < kDraws; ++position) {
    RandomStream random(10, 3, position, RandomUse::crop);
    const Rect region = crop.choose(400, 400, random);
    const double area = region.height * region.width / 160000.0;
    const double ratio = static_cast<double>(region.width) / region.height;
    ASSERT_GE(area, 0.078);
    ASSERT_GE(ratio, 0.74);
    ASSERT_LE(ratio, 1.35);
    area_sum += area;
  }
  // The area is uniform in [0.08, 1], except that large elongated crops do not fit. On a square
  // image, the mean is about 0.49.
  EXPECT_NEAR(area_sum / kDraws, 0.49, 0.03);
}

TEST(RandomResizedCropTest, FallsBackToACentredCropWithinTheRatios) {
  const RandomResizedCrop crop;
  RandomStream random(1, 0, 0, RandomUse::crop);
  // In an image this elongated, no crop with a ratio of at most 4/3 has at least 8 % of the area.
  EXPECT_EQ(crop.choose(10, 4000, random), (Rect{0, 1993, 10, 13}));
  EXPECT_EQ(crop.choose(4000, 10, random), (Rect{1993, 0, 13, 10}));
}

TEST(RandomResizedCropTest, SameStreamSameCrop) {
  const RandomResizedCrop crop;
  RandomStream a(5, 2, 77, RandomUse::crop), b(5, 2, 77, RandomUse::crop),
      c(5, 3, 77, RandomUse::crop);
  const Rect first = crop.choose(300, 200, a);
  EXPECT_EQ(first, crop.choose(300, 200, b));
  EXPECT_NE(first, crop.choose(300, 200, c));
}

TEST(CenterCropTest, IsTheCentredSquareOfFfcv) {
  RandomStream random(0, 0, 0, RandomUse::crop);
  // c = int(ratio * min(h, w)), offsets floor((h - c) / 2).
  EXPECT_EQ(CenterCrop(0.875).choose(375, 500, random), (Rect{23, 86, 328, 328}));
  EXPECT_EQ(CenterCrop(1.0).choose(64, 48, random), (Rect{8, 0, 48, 48}));
  EXPECT_EQ(CenterCrop(0.1).choose(3, 3, random), (Rect{1, 1, 1, 1}));
}

TEST(FixedCropTest, IsCutAtTheImage) {
  RandomStream random(0, 0, 0, RandomUse::crop);
  EXPECT_EQ(FixedCrop({10, 20, 30, 40}).choose(100, 100, random), (Rect{10, 20, 30, 40}));
  EXPECT_EQ(FixedCrop({10, 20, 30, 40}).choose(25, 30, random), (Rect{10, 20, 15, 10}));
  EXPECT_EQ(FixedCrop({10, 20, 30, 40}).choose(5, 5, random), (Rect{4, 4, 1, 1}));
}

}  // namespace
}  // namespace precast::data
