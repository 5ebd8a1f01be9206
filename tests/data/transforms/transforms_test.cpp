// Tests how transforms choose their parameters. The choice must depend only on the transform's
// random stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "data/transforms/augmix.h"
#include "data/transforms/rand_augment.h"
#include "data/transforms/register.h"
#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "tests/data/transforms/transform_golden.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::golden_image;
using test::Names;
using test::PixelBuffer;
using testing::ThrowsMessage;
using Values = std::vector<std::uint8_t>;

/// The values as a string, for use in sets: GCC 12 warns about sets of byte vectors.
std::string text(const Values& values) {
  return {values.begin(), values.end()};
}

/// Makes a transform with `options`, a YAML text in flow style.
std::shared_ptr<const Transform> make(const std::string& name, const std::string& options = "{}") {
  TransformRegistries registries;
  register_transforms(registries);
  std::shared_ptr<Transform> transform = registries.transforms.create(name);
  Diagnostics diagnostics;
  const ConfigNode file = parse_yaml("o: " + options + "\n", "o.yaml", diagnostics);
  Schema schema;
  transform->options(schema);
  schema.apply(*file.find("o"), diagnostics);
  schema.check_required({}, diagnostics);
  diagnostics.throw_if_errors();
  EXPECT_EQ(transform->problem(), "");
  transform->prepare();
  return transform;
}

/// The golden image after the transform, with the random numbers of the sample at `position`.
PixelBuffer changed(const Transform& transform, std::uint64_t position, std::uint64_t sample = 0,
                    PixelBuffer image = golden_image(),
                    std::optional<std::uint8_t> mask_fill = {}) {
  // The scratch memory has different content in each call, because no result may depend on it.
  static int calls = 0;
  std::vector<std::byte> scratch(transform.scratch_bytes(image.shape),
                                 static_cast<std::byte>(++calls));
  TransformContext context{.random = RandomStream(7, 1, position, RandomUse::transform),
                           .sample = sample,
                           .scratch = scratch,
                           .mask_fill = mask_fill};
  const PixelShape out = transform.output(image.shape);
  image.values.resize(std::max(image.shape.values(), out.values()));
  transform.apply(image.pixels(), context);
  image.shape = out;
  image.values.resize(out.values());
  return image;
}

double share_changed(const Transform& transform, int draws = 400) {
  const Values before = golden_image().values;
  int count = 0;
  for (int p = 0; p < draws; ++p)
    count += changed(transform, static_cast<std::uint64_t>(p)).values != before ? 1 : 0;
  return count / static_cast<double>(draws);
}

const std::map<std::string, std::string> kOptions = {
    {"translate", "{padding: 3}"},      {"pad_crop", "{padding: 3, mode: reflect}"},
    {"rotate", "{degrees: [-30, 30]}"}, {"affine", "{degrees: [-30, 30], translate: [0.1, 0.1]}"},
    {"cutout", "{crop_size: 9}"},       {"brightness", "{magnitude: 0.5}"},
    {"contrast", "{magnitude: 0.5}"},   {"saturation", "{magnitude: 0.5}"},
    {"hue", "{magnitude: 0.3}"},        {"color_jitter", "{brightness: 0.4, hue: 0.1}"},
    {"posterize", "{bits: 3}"},         {"gaussian_blur", "{kernel_size: 5}"},
};

/// Every transform that needs no file.
std::vector<std::string> all_names() {
  TransformRegistries registries;
  register_transforms(registries);
  std::vector<std::string> names = registries.transforms.names();
  std::erase(names, "poison");
  return names;
}

std::shared_ptr<const Transform> make_any(const std::string& name) {
  const auto options = kOptions.find(name);
  return make(name, options == kOptions.end() ? "{}" : options->second);
}

class EveryTransformTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryTransformTest, DependsOnItsStreamAloneAndVaries) {
  const auto transform = make_any(GetParam());
  std::set<std::string> seen;
  for (std::uint64_t position = 0; position < 60; ++position) {
    const PixelBuffer once = changed(*transform, position);
    ASSERT_EQ(changed(*transform, position).values, once.values) << position;
    seen.insert(text(once.values));
  }
  EXPECT_GE(seen.size(), 2U);
}

TEST_P(EveryTransformTest, WorksOnTheSmallestImagesOrSaysWhyNot) {
  const auto transform = make_any(GetParam());
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 9}, {2, 3}, {9, 1}, {12, 12}}) {
    PixelBuffer small{.values = Values(static_cast<std::size_t>(height * width) * 3, 50),
                      .shape = {height, width, 3}};
    try {
      for (std::uint64_t position = 0; position < 20; ++position) {
        const PixelBuffer out = changed(*transform, position, 0, small);
        ASSERT_GT(out.shape.values(), 0U);
      }
    } catch (const ConfigError& error) {
      EXPECT_STRNE(error.what(), "") << height << " x " << width;
    }
  }
}

TEST_P(EveryTransformTest, AMaskMovesAsItsImageDoes) {
  const auto transform = make_any(GetParam());
  if (!transform->moves_pixels()) return;
  // Each pixel's value encodes its position. With a mask fill, interpolation is never bilinear, so
  // an image moves exactly as a mask does.
  PixelBuffer positions{.values = {}, .shape = {24, 24, 3}};
  PixelBuffer mask{.values = {}, .shape = {24, 24, 1}};
  for (int p = 0; p < 24 * 24; ++p) {
    const auto value = static_cast<std::uint8_t>(p % 251 + 1);
    positions.values.insert(positions.values.end(), {value, value, value});
    mask.values.push_back(value);
  }
  for (std::uint64_t position = 0; position < 30; ++position) {
    const PixelBuffer moved = changed(*transform, position, 0, mask, 0);
    // The same values in all three channels of an image, moved with the rules for masks.
    const PixelBuffer image = changed(*transform, position, 0, positions, 0);
    for (std::size_t p = 0; p < moved.values.size(); ++p)
      ASSERT_EQ(moved.values[p], image.values[3 * p]) << position << " " << p;
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryTransformTest, ::testing::ValuesIn(all_names()),
                         [](const auto& name) { return name.param; });

TEST(TransformsTest, ProbabilitiesAreThoseAskedFor) {
  EXPECT_NEAR(share_changed(*make("horizontal_flip")), 0.5, 0.09);
  EXPECT_NEAR(share_changed(*make("vertical_flip", "{probability: 0.25}")), 0.25, 0.08);
  EXPECT_NEAR(share_changed(*make("grayscale")), 0.1, 0.06);
  EXPECT_NEAR(share_changed(*make("solarize")), 0.5, 0.09);
  EXPECT_NEAR(share_changed(*make("brightness", "{magnitude: 0.5}")), 0.5, 0.09);
  EXPECT_NEAR(share_changed(*make("random_erasing")), 0.5, 0.09);
  EXPECT_EQ(share_changed(*make("cutout", "{crop_size: 9}")), 1);
  EXPECT_EQ(share_changed(*make("gaussian_blur", "{kernel_size: 3, probability: 0}"), 20), 0);
}

TEST(TransformsTest, FlipsMirror) {
  const PixelBuffer before = golden_image();
  const PixelBuffer flipped = changed(*make("horizontal_flip", "{probability: 1}"), 0);
  const PixelBuffer turned = changed(*make("vertical_flip", "{probability: 1}"), 0);
  for (std::size_t y = 0; y < 37; ++y) {
    for (std::size_t x = 0; x < 45; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::uint8_t value = before.values[(y * 45 + x) * 3 + c];
        ASSERT_EQ(flipped.values[(y * 45 + 44 - x) * 3 + c], value);
        ASSERT_EQ(turned.values[((36 - y) * 45 + x) * 3 + c], value);
      }
    }
  }
}

TEST(TransformsTest, TranslationsTakeEveryOffsetOfThePaddedImage) {
  for (const std::string mode : {"constant", "edge", "reflect", "symmetric"}) {
    const auto transform = make("pad_crop", "{padding: 3, mode: " + mode + "}");
    std::set<std::string> seen;
    for (std::uint64_t position = 0; position < 1500; ++position)
      seen.insert(text(changed(*transform, position).values));
    EXPECT_EQ(seen.size(), 49U) << mode;
    for (const Values& expected : test::transform_golden("pad_" + mode).images)
      EXPECT_TRUE(seen.contains(text(expected))) << mode;
  }
  const auto translate = make("translate", "{padding: 3}");
  const auto pad_crop = make("pad_crop", "{padding: 3}");
  EXPECT_EQ(changed(*translate, 5).values, changed(*pad_crop, 5).values);
}

TEST(TransformsTest, CutoutIsASquareWhollyInside) {
  const auto cutout = make("cutout", "{crop_size: 9, fill: [1, 2, 3]}");
  std::set<std::size_t> rows, columns;
  for (std::uint64_t position = 0; position < 1000; ++position) {
    PixelBuffer grey = golden_image();
    std::ranges::fill(grey.values, std::uint8_t{100});
    const PixelBuffer out = changed(*cutout, position, 0, grey);
    const auto first =
        static_cast<std::size_t>(std::ranges::find(out.values, 1) - out.values.begin()) / 3;
    ASSERT_EQ(std::ranges::count(out.values, 1), 81);
    ASSERT_EQ(std::ranges::count(out.values, 3), 81);
    ASSERT_EQ(out.values[3 * (first + 8 * 45 + 8)], 1);
    rows.insert(first / 45);
    columns.insert(first % 45);
  }
  EXPECT_EQ(rows.size(), 29U);
  EXPECT_EQ(columns.size(), 37U);
}

TEST(TransformsTest, ErasedRectanglesKeepToTheirRanges) {
  const auto erasing =
      make("random_erasing", "{probability: 1, scale: [0.1, 0.3], fill: [1, 1, 1]}");
  double sum = 0;
  for (std::uint64_t position = 0; position < 500; ++position) {
    PixelBuffer grey = golden_image();
    std::ranges::fill(grey.values, std::uint8_t{100});
    const PixelBuffer out = changed(*erasing, position, 0, grey);
    const double share = static_cast<double>(std::ranges::count(out.values, 1)) / (37 * 45 * 3);
    ASSERT_GT(share, 0.08);
    ASSERT_LT(share, 0.33);
    sum += share;
  }
  EXPECT_NEAR(sum / 500, 0.2, 0.02);
}

TEST(TransformsTest, ErasedNoiseHasTheMeanAndSpreadAskedFor) {
  const auto noise =
      make("random_erasing",
           "{probability: 1, scale: [0.3, 0.33], fill: [120, 120, 120], noise_std: 20}");
  double sum = 0, squares = 0, count = 0;
  for (std::uint64_t position = 0; position < 40; ++position) {
    PixelBuffer black = golden_image();
    std::ranges::fill(black.values, std::uint8_t{0});
    for (const std::uint8_t value : changed(*noise, position, 0, black).values) {
      if (value == 0) continue;
      sum += value;
      squares += static_cast<double>(value) * value;
      ++count;
    }
  }
  const double mean = sum / count;
  EXPECT_NEAR(mean, 120, 0.5);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 20, 0.5);
}

TEST(TransformsTest, ColOutKeepsRowsAndColumnsInOrder) {
  const auto col_out = make("col_out", "{p_row: 0.25, p_col: 0.5}");
  PixelBuffer positions{.values = {}, .shape = {20, 30, 3}};
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 30; ++x)
      positions.values.insert(positions.values.end(),
                              {static_cast<std::uint8_t>(y), static_cast<std::uint8_t>(x), 0});
  }
  std::map<int, int> rows_kept;
  for (std::uint64_t position = 0; position < 400; ++position) {
    const PixelBuffer out = changed(*col_out, position, 0, positions);
    ASSERT_EQ(out.shape, (PixelShape{15, 15, 3}));
    for (std::size_t y = 0; y < 15; ++y) {
      ++rows_kept[out.values[y * 45]];
      for (std::size_t x = 0; x < 15; ++x) {
        ASSERT_EQ(out.values[(y * 15 + x) * 3], out.values[y * 45]);
        ASSERT_EQ(out.values[(y * 15 + x) * 3 + 1], out.values[x * 3 + 1]);
        ASSERT_TRUE(x == 0 || out.values[x * 3 + 1] > out.values[(x - 1) * 3 + 1]);
      }
    }
  }
  // Each of 20 rows is kept in 3/4 of 400 images.
  for (int y = 0; y < 20; ++y) EXPECT_NEAR(rows_kept[y], 300, 45) << y;
}

TEST(TransformsTest, RandAugmentAppliesTorchvisionsOperations) {
  const test::Golden golden = test::transform_golden("augmentations");
  const auto one = make("rand_augment", "{num_ops: 1}");
  std::vector<int> found(golden.images.size());
  int other = 0;
  for (std::uint64_t position = 0; position < 600; ++position) {
    const Values out = changed(*one, position).values;
    bool known = false;
    for (std::size_t i = 0; i < golden.images.size() && !known; ++i) {
      const test::Difference off = test::difference(out, golden.images[i]);
      // Changed colours differ by at most one level. Moved pixels are equal, except at positions
      // halfway between two pixels.
      known = (off.worst <= 1 && off.share < 0.08) || off.share <= 0.002;
      found[i] += known ? 1 : 0;
    }
    other += known ? 0 : 1;
  }
  EXPECT_EQ(other, 0);
  std::map<std::string, int> by_name;
  for (std::size_t i = 0; i < found.size(); ++i) by_name[golden.cases[i][0]] += found[i];
  // The image contains black and white: stretching its contrast changes nothing.
  EXPECT_EQ(by_name["AutoContrast"], 0);
  EXPECT_NEAR(by_name["Identity"], 2 * 600 / 14, 36);
  for (const auto& [name, count] : by_name) {
    if (name == "AutoContrast" || name == "Identity") continue;
    EXPECT_NEAR(count, 600 / 14, 26) << name;
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(found[i] > 0 || golden.cases[i][0] == "AutoContrast") << golden.cases[i];
}

TEST(TransformsTest, ColorJitterOfNothingChangesNothing) {
  EXPECT_EQ(share_changed(*make("color_jitter"), 20), 0);
  EXPECT_EQ(share_changed(*make("color_jitter", "{contrast: 0.5}"), 20), 1);
}

TEST(AugMixTest, WeightsHaveTheMomentsOfTheirDistributions) {
  constexpr int kDraws = 20000;
  for (const double alpha : {0.3, 1.0, 5.0}) {
    RandomStream random(1, 0, 0, RandomUse::test);
    double sum = 0, squares = 0, mixed = 0, mixed_squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const std::vector<std::int32_t> weights = augmix_weights(random, 3, alpha);
      ASSERT_EQ(weights.size(), 3U);
      const double first = weights[0] / 65536.0;
      const double all = (weights[0] + weights[1] + weights[2]) / 65536.0;
      ASSERT_TRUE(first >= 0 && all <= 1.0001) << first << " " << all;
      sum += first;
      squares += first * first;
      mixed += all;
      mixed_squares += all * all;
    }
    // The second moments of Beta(a, a) and of one component of Dirichlet(a, a, a).
    const double beta_square = 0.25 + 1 / (4 * (2 * alpha + 1));
    const double dirichlet_square = 1.0 / 9 + 2.0 / 9 / (3 * alpha + 1);
    EXPECT_NEAR(mixed / kDraws, 0.5, 0.01) << alpha;
    EXPECT_NEAR(mixed_squares / kDraws, beta_square, 0.01) << alpha;
    EXPECT_NEAR(sum / kDraws, 1.0 / 6, 0.01) << alpha;
    EXPECT_NEAR(squares / kDraws, beta_square * dirichlet_square, 0.01) << alpha;
  }
}

TEST(AugMixTest, OneChainWithWeightZeroOrOneIsTheImageOrAnOperation) {
  const auto one = make("augmix", "{severity: 1, width: 1, depth: 1, alpha: 1e-5}");
  const Values before = golden_image().values;
  const Values equalized = test::transform_golden("equalize").images.at(0);
  const test::Golden posterized = test::transform_golden("posterize");
  ASSERT_EQ(posterized.cases[2], 4);
  constexpr int kDraws = 2600;
  int same = 0, equal = 0, poster = 0;
  for (std::uint64_t position = 0; position < kDraws; ++position) {
    const Values out = changed(*one, position).values;
    same += out == before ? 1 : 0;
    equal += out == equalized ? 1 : 0;
    poster += out == posterized.images[2] ? 1 : 0;
  }
  // Half of the draws have weight 1, and there are 13 operations.
  EXPECT_NEAR(equal, kDraws / 26, 35);
  EXPECT_NEAR(poster, kDraws / 26, 35);
  // Auto-contrast, a rotation by 0 degrees and a translation by 0 px leave the image unchanged. So
  // do color, contrast, brightness and sharpness in half of their draws: the factor is then from
  // [1, severity] and therefore 1.
  EXPECT_NEAR(same / static_cast<double>(kDraws), 0.5 + 0.5 * (1 + 0.26 + 0.63 + 0.79 + 2) / 13,
              0.03);
}

/// Applies augmix with these options to a grey image of value 100. @return the values of the middle
/// pixel, and how often each value occurs.
std::map<int, int> grey_becomes(const std::string& options, int draws) {
  const auto augmix = make("augmix", options);
  std::map<int, int> found;
  for (int p = 0; p < draws; ++p) {
    PixelBuffer grey = golden_image();
    std::ranges::fill(grey.values, std::uint8_t{100});
    ++found[changed(*augmix, static_cast<std::uint64_t>(p), 0, grey).values[(18 * 45 + 22) * 3]];
  }
  return found;
}

TEST(AugMixTest, ChainsAreBlendedAndRoundedToTheNearest) {
  // Of the 9 safe operations, only posterize changes the middle of a grey image: from 100 to 96.
  // The original image has weight 1/2, and each chain has weight 1/4.
  const auto found =
      grey_becomes("{severity: 1, width: 2, depth: 1, alpha: 1e7, augmentation_set: safe}", 2000);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NEAR(found.at(100), 2000 * 64 / 81, 90);
  EXPECT_NEAR(found.at(99), 2000 * 16 / 81, 80);
  EXPECT_NEAR(found.at(98), 2000 * 1 / 81, 22);
}

TEST(AugMixTest, TheSetDecidesWhichOperationsThereAre) {
  const std::string chain = "{severity: 1, width: 1, depth: 1, alpha: 1e-5, augmentation_set: ";
  EXPECT_EQ(grey_becomes(chain + "safe}", 600).size(), 2U);
  const auto all = grey_becomes(chain + "all}", 600);
  const auto original = grey_becomes(chain + "original}", 600);
  // Brightness factors are 0.91 to 1 in the set `all`, and 0.118 to 0.28 in `original`, the
  // authors' set.
  EXPECT_GE(all.begin()->first, 90);
  EXPECT_GT(all.size(), 3U);
  EXPECT_GE(original.begin()->first, 11);
  EXPECT_LE(original.begin()->first, 28);
}

TEST(AugMixTest, ADepthOfNothingIsRefused) {
  TransformRegistries registries;
  register_transforms(registries);
  const auto augmix = registries.transforms.create("augmix");
  EXPECT_EQ(augmix->problem(), "");
  Schema schema;
  augmix->options(schema);
  Diagnostics diagnostics;
  const ConfigNode file = parse_yaml("o: {depth: 0}\n", "o.yaml", diagnostics);
  schema.apply(*file.find("o"), diagnostics);
  diagnostics.throw_if_errors();
  EXPECT_THAT(augmix->problem(), testing::HasSubstr("depth"));
}

TEST(PoisonTest, ChangesTheListedSamplesAsFfcvDoes) {
  test::TemporaryFolder folder;
  const Values image = golden_image().values;
  Values mask(image.size());
  for (std::size_t p = 0; p < 37 * 45; ++p)
    std::copy_n(image.data() + 3 * (37 * 45 - 1 - p), 3, mask.data() + 3 * p);
  std::vector<double> alpha(37 * 45);
  for (std::size_t p = 0; p < alpha.size(); ++p)
    alpha[p] = static_cast<double>(p) / static_cast<double>(alpha.size() - 1);
  const std::int64_t shape[] = {37, 45, 3};
  write_npy(folder / "mask.npy", DType::u8, shape, std::as_bytes(std::span(mask)));
  write_npy(folder / "alpha.npy", DType::f64, std::span(shape, 2), std::as_bytes(std::span(alpha)));
  const auto poison = make("poison", "{mask: " + (folder / "mask.npy").string() + ", alpha: " +
                                         (folder / "alpha.npy").string() + ", indices: [9, 4]}");
  const test::Golden golden = test::transform_golden("poison");
  EXPECT_EQ(changed(*poison, 0, /*sample=*/3).values, golden.images[0]);
  // FFCV rounds to float after each of two steps.
  const test::Difference off =
      test::difference(changed(*poison, 0, /*sample=*/4).values, golden.images[1]);
  EXPECT_LE(off.worst, 1);
  EXPECT_LT(off.share, 0.01);
  EXPECT_NE(changed(*poison, 0, /*sample=*/9).values, golden.images[0]);
  EXPECT_THROW(static_cast<void>(poison->output({32, 32, 3})), ConfigError);
}

TEST(PoisonTest, AnArrayOfAnotherTypeOrOutsideItsRangeIsRefused) {
  test::TemporaryFolder folder;
  const std::string mask = folder / "mask.npy";
  const std::string alpha = folder / "alpha.npy";
  const auto making = [&] {
    (void)make("poison", "{mask: " + mask + ", alpha: " + alpha + ", indices: [1]}");
  };
  const std::int64_t shape[] = {1, 2, 3};
  const Values values(6);
  write_npy(mask, DType::i8, shape, std::as_bytes(std::span(values)));
  EXPECT_THAT(making, ThrowsMessage<ConfigError>(Names("mask", "int8", "[1, 2, 3]", mask)));
  write_npy(mask, DType::u8, shape, std::as_bytes(std::span(values)));
  const std::int64_t counts[] = {0, 1};
  write_npy(alpha, DType::i64, std::span(shape, 2), std::as_bytes(std::span(counts)));
  EXPECT_THAT(making, ThrowsMessage<ConfigError>(Names("alpha", "int64", "[1, 2]", alpha)));
  for (const double wrong : {std::nan(""), HUGE_VAL, -0.5, 1.5}) {
    const double opacities[] = {1, wrong};
    write_npy(alpha, DType::f64, std::span(shape, 2), std::as_bytes(std::span(opacities)));
    EXPECT_THAT(making, ThrowsMessage<ConfigError>(Names("alpha", "[0, 1]", alpha))) << wrong;
  }
  const double opacities[] = {0, 1};
  write_npy(alpha, DType::f64, std::span(shape, 2), std::as_bytes(std::span(opacities)));
  EXPECT_NO_THROW(making());
}

TEST(ReplaceLabelTest, ChangesTheListedSamplesAlone) {
  TransformRegistries registries;
  register_transforms(registries);
  const auto replace = registries.labels.create("replace_label");
  Diagnostics diagnostics;
  Schema schema;
  replace->options(schema);
  const ConfigNode file = parse_yaml("o: {indices: [7, 2, 5], new_label: 9}\n", "o", diagnostics);
  schema.apply(*file.find("o"), diagnostics);
  diagnostics.throw_if_errors();
  replace->prepare();
  for (std::uint64_t sample = 0; sample < 10; ++sample) {
    const bool listed = sample == 2 || sample == 5 || sample == 7;
    EXPECT_EQ(replace->apply(1, sample), listed ? 9 : 1) << sample;
  }
}

}  // namespace
}  // namespace precast::data
