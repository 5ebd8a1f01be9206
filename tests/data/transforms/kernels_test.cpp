// Compares the results of the transforms for given parameters with those of torchvision 0.26 and
// FFCV 1.0.2.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "data/resample/nearest.h"
#include "data/transforms/augmix.h"
#include "data/transforms/color.h"
#include "data/transforms/gaussian_blur.h"
#include "data/transforms/rand_augment.h"
#include "data/transforms/warp.h"
#include "tests/data/transforms/transform_golden.h"

namespace precast::data {
namespace {

using nlohmann::json;
using test::Difference;
using test::difference;
using test::Golden;
using test::golden_image;
using test::PixelBuffer;
using test::transform_golden;

using Change = std::function<void(const Pixels&, const json&)>;

/// Applies `change` to the original image for each case of a golden. @return the largest
/// difference.
Difference worst_of(const std::string& name, const Change& change) {
  const Golden golden = transform_golden(name);
  EXPECT_EQ(golden.cases.size(), golden.images.size()) << name;
  EXPECT_FALSE(golden.images.empty()) << name;
  Difference worst;
  for (std::size_t i = 0; i < golden.images.size(); ++i) {
    PixelBuffer image = golden_image();
    change(image.pixels(), golden.cases[i]);
    const Difference found = difference(image.values, golden.images[i]);
    worst.worst = std::max(worst.worst, found.worst);
    worst.share = std::max(worst.share, found.share);
    EXPECT_EQ(image.shape, (PixelShape{37, 45, 3}));
  }
  return worst;
}

/// A change that calls a kernel whose parameter is one number.
Change by(void (*kernel)(const Pixels&, double)) {
  return [kernel](const Pixels& image, const json& value) { kernel(image, value.get<double>()); };
}

std::span<std::byte> scratch_of(const Pixels& image) {
  static std::vector<std::byte> memory;
  memory.resize(image.shape.values());
  return memory;
}

TEST(ColorKernelsTest, BrightnessAndContrastEqualFfcvs) {
  EXPECT_EQ(worst_of("ffcv_brightness", by(adjust_brightness)).worst, 0);
  EXPECT_EQ(worst_of("ffcv_contrast", by(adjust_contrast)).worst, 0);
}

TEST(ColorKernelsTest, SaturationIsFfcvsUpToFloat) {
  // FFCV adds in double, precast in float: a sum close to an integer may be truncated differently.
  const Difference found = worst_of("ffcv_saturation", by(adjust_saturation));
  EXPECT_LE(found.worst, 1);
  EXPECT_LT(found.share, 0.03);
}

TEST(ColorKernelsTest, FactorsAreWithinOneLevelOfTorchvision) {
  // torchvision multiplies in float; where the product is an integer, the two results may be
  // truncated differently.
  const std::map<std::string, void (*)(const Pixels&, double)> kernels = {
      {"brightness", adjust_brightness},
      {"contrast", adjust_contrast},
      {"saturation", adjust_saturation}};
  for (const auto& [name, kernel] : kernels) {
    const Difference found = worst_of(name, by(kernel));
    EXPECT_LE(found.worst, 1) << name;
    EXPECT_LT(found.share, 0.08) << name;
  }
}

TEST(ColorKernelsTest, HueIsWithinOneLevelOfTorchvision) {
  // torchvision uses a different formula for the same rotation of the hue.
  const Difference found = worst_of("hue", by(adjust_hue));
  EXPECT_LE(found.worst, 1);
  EXPECT_LT(found.share, 0.02);
}

TEST(ColorKernelsTest, TablesEqualTorchvision) {
  const auto plain = [](void (*kernel)(const Pixels&)) {
    return [kernel](const Pixels& image, const json&) { kernel(image); };
  };
  EXPECT_EQ(worst_of("grayscale", plain(to_grayscale)).worst, 0);
  EXPECT_EQ(worst_of("solarize", by(solarize)).worst, 0);
  EXPECT_EQ(
      worst_of("posterize", [](const Pixels& image, const json& bits) { posterize(image, bits); })
          .worst,
      0);
}

TEST(ColorKernelsTest, HistogramOperationsEqualTorchvision) {
  // In case 1, the input is a copy of the image with less contrast.
  const auto of = [](void (*kernel)(const Pixels&)) {
    return [kernel](const Pixels& image, const json& low_contrast) {
      if (low_contrast == 1) {
        for (std::size_t i = 0; i < image.shape.values(); ++i)
          image.data[i] = static_cast<std::uint8_t>(60 + image.data[i] / 3);
      }
      kernel(image);
    };
  };
  EXPECT_EQ(worst_of("autocontrast", of(autocontrast)).worst, 0);
  EXPECT_EQ(worst_of("equalize", of(equalize)).worst, 0);
}

TEST(ColorKernelsTest, SharpnessIsWithinOneLevelOfTorchvision) {
  const Difference found = worst_of("sharpness", [](const Pixels& image, const json& factor) {
    adjust_sharpness(image, factor, scratch_of(image));
  });
  EXPECT_LE(found.worst, 1);
  EXPECT_LT(found.share, 0.01);
}

TEST(ColorKernelsTest, ImagesOfAnyWidthAreChangedToTheirLastPixelAndNotBeyond) {
  for (int width = 1; width <= 40; ++width) {
    PixelBuffer narrow{
        .values = std::vector<std::uint8_t>(static_cast<std::size_t>(width) * 3 + 1, 77),
        .shape = {1, width, 3}};
    for (std::size_t i = 0; i < narrow.values.size(); i += 3) narrow.values[i] = 200;
    narrow.values.back() = 99;
    const std::uint8_t grey = static_cast<std::uint8_t>(0.2989 * 200 + 0.587 * 77 + 0.114 * 77);
    to_grayscale(narrow.pixels());
    for (std::size_t i = 0; i + 1 < narrow.values.size(); ++i) ASSERT_EQ(narrow.values[i], grey);
    ASSERT_EQ(narrow.values.back(), 99);
  }
}

TEST(GaussianBlurTest, IsWithinOneLevelOfTorchvision) {
  const Difference found = worst_of("gaussian_blur", [](const Pixels& image, const json& c) {
    std::vector<std::byte> scratch(blur_scratch_bytes(image.shape, c[0]));
    gaussian_blur(image, c[0], c[1], scratch);
  });
  EXPECT_LE(found.worst, 1);
  EXPECT_LT(found.share, 0.01);
}

void rotate(const Pixels& image, double angle, Interpolation interpolation,
            const std::array<std::uint8_t, 3>& fill) {
  warp(image, inverse_matrix({.angle = -angle}), interpolation, fill, scratch_of(image));
}

void affine(const Pixels& image, const json& c, Interpolation interpolation,
            const std::array<std::uint8_t, 3>& fill) {
  AffineParameters parameters{
      .angle = c[0], .translate = {c[1], c[2]}, .scale = c[3], .shear = {c[4], c[5]}};
  if (c[6] == 1) parameters.center = {-0.5 * image.shape.width, -0.5 * image.shape.height};
  warp(image, inverse_matrix(parameters), interpolation, fill, scratch_of(image));
}

TEST(WarpTest, NearestIsTorchvisionsButForTies) {
  const std::array<std::uint8_t, 3> fill = {10, 200, 30};
  // torch computes the grid in float, in a different order: a position halfway between two pixels
  // may be rounded differently.
  EXPECT_LE(worst_of("rotate_nearest",
                     [&](const Pixels& image, const json& angle) {
                       rotate(image, angle, Interpolation::nearest, fill);
                     })
                .share,
            0.002);
  EXPECT_LE(worst_of("affine_nearest",
                     [&](const Pixels& image, const json& c) {
                       affine(image, c, Interpolation::nearest, fill);
                     })
                .share,
            0.002);
}

TEST(WarpTest, BilinearIsWithinOneLevelOfTorchvision) {
  for (const Difference& found :
       {worst_of("rotate_bilinear",
                 [&](const Pixels&image, const json&angle) {
                   rotate(image, angle, Interpolation::bilinear, {0, 0, 0});
                 }),
        worst_of("affine_bilinear", [&](const Pixels&image, const json&c) {
          affine(image, c, Interpolation::bilinear, {0, 0, 0});
        })}) {
    EXPECT_LE(found.worst, 1);
    EXPECT_LT(found.share, 0.01);
  }
}

TEST(WarpTest, AMaskMovesAsTheImageDoes) {
  PixelBuffer image = golden_image();
  PixelBuffer mask{.values = {}, .shape = {37, 45, 1}};
  for (std::size_t p = 0; p < image.shape.pixels(); ++p) mask.values.push_back(image.values[3 * p]);
  const AffineMatrix matrix = inverse_matrix({.angle = 31, .translate = {2, -3}, .scale = 1.2});
  warp(image.pixels(), matrix, Interpolation::nearest, {9, 9, 9}, scratch_of(image.pixels()));
  warp(mask.pixels(), matrix, Interpolation::nearest, {9, 9, 9}, scratch_of(mask.pixels()));
  for (std::size_t p = 0; p < image.shape.pixels(); ++p)
    ASSERT_EQ(mask.values[p], image.values[3 * p]) << p;
}

TEST(AugmentationsTest, MagnitudesAreTorchvisions) {
  const json tables = test::transform_golden_facts()["tables"];
  const PixelShape shape{224, 160, 3};
  for (const bool wide : {false, true}) {
    const json& table = tables[wide ? "trivial_augment" : "rand_augment"];
    ASSERT_EQ(table.size(), kAugmentations.size());
    for (std::size_t operation = 0; operation < kAugmentations.size(); ++operation) {
      const json& row = table[std::string(kAugmentations[operation])];
      EXPECT_EQ(row["signed"], augmentation_is_signed(operation)) << kAugmentations[operation];
      if (row["magnitudes"].is_null()) continue;
      for (int bin = 0; bin < 31; ++bin) {
        EXPECT_NEAR(augmentation_magnitude(operation, wide, bin, 31, shape),
                    row["magnitudes"][static_cast<std::size_t>(bin)].get<double>(), 1e-5)
            << kAugmentations[operation] << " " << bin;
      }
    }
  }
}

TEST(AugmentationsTest, StrengthsOfAugMixAreComposers) {
  using namespace augmentation;
  const std::map<std::string, std::size_t> operations = {
      {"posterize", posterizing},   {"rotate", rotation},    {"solarize", solarizing},
      {"shear_x", shear_x},         {"shear_y", shear_y},    {"translate_x", translate_x},
      {"translate_y", translate_y}, {"color", color},        {"contrast", contrast},
      {"brightness", brightness},   {"sharpness", sharpness}};
  const json table = test::transform_golden_facts()["tables"]["augmix"];
  ASSERT_EQ(table.size(), 15U * 12);
  for (const json& row : table) {
    std::string name = row[0];
    const bool original = name.ends_with("_original");
    if (original) name.resize(name.size() - std::string("_original").size());
    const std::size_t operation = operations.at(name);
    double magnitude = augmix_magnitude(operation, row[1].get<int>(), original,
                                        row[2].get<std::array<double, 2>>(), {224, 160, 3});
    if (operation == solarizing) magnitude = std::ceil(255 * magnitude);
    if (operation >= brightness && operation <= sharpness) magnitude += 1;
    EXPECT_NEAR(magnitude, row[3].get<double>(), 1e-9) << row;
  }
}

TEST(ResizeNearestTest, EqualsTorchsNearestExact) {
  PixelBuffer image = golden_image();
  const ImageView view{image.values.data(), 37, 45, 45 * 3};
  for (const auto& [height, width] : {std::pair{20, 31}, {37, 45}, {64, 50}}) {
    const std::string name = "nearest_" + std::to_string(height) + "x" + std::to_string(width);
    PixelBuffer out{
        .values = std::vector<std::uint8_t>(static_cast<std::size_t>(height * width) * 3),
        .shape = {height, width, 3}};
    resize_nearest(view, /*flip=*/false, out.pixels());
    EXPECT_EQ(out.values, transform_golden(name).images[0]) << name;
  }
}

}  // namespace
}  // namespace precast::data
