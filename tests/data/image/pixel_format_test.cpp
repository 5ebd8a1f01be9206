#include "data/image/pixel_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "data/image/normalize.h"
#include "framework/core/rng.h"
#include "tests/support/simd_targets.h"

namespace precast::data {
namespace {

/// All 256 values in each channel; 257 pixels, so that a row does not end at the end of a SIMD
/// vector.
Image all_values() {
  Image image(1, 257);
  for (std::size_t p = 0; p < 257; ++p) {
    for (std::size_t c = 0; c < 3; ++c) {
      image.pixels[3 * p + c] = static_cast<std::uint8_t>(p + 85 * c);
    }
  }
  return image;
}

template <typename T>
std::vector<T> written(const Image& image, const PixelFormat& format) {
  std::vector<T> out(image.pixels.size());
  write_pixels(image.view(), format, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

/// The exact value of a float16.
double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? INFINITY : NAN;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

double bfloat16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Expects that the value is `exact` rounded to nearest even: no neighbour is nearer, and no even
/// neighbour is equally near.
template <typename Value>
void expect_nearest_even(std::uint16_t bits, double exact, Value value) {
  const double error = std::abs(value(bits) - exact);
  for (const int step : {-1, 1}) {
    const auto neighbour = static_cast<std::uint16_t>(bits + step);
    if ((neighbour & 0x8000) != (bits & 0x8000)) continue;  // past zero
    const double other = std::abs(value(neighbour) - exact);
    EXPECT_TRUE(error < other || (error == other && bits % 2 == 0)) << exact << " " << bits;
  }
  if (exact != 0) {
    EXPECT_EQ(bits >> 15 != 0, exact < 0);
  }
}

/// ImageNet's options, options for which Formula::line is not exact, options that give tiny or huge
/// results, and random options.
std::vector<NormalizeOptions> all_options() {
  std::vector<NormalizeOptions> options = {
      {},
      {.mean = {0, 0, 0}, .std = {255, 255, 255}},
      {.mean = {127.5, 127.5, 127.5}, .std = {127.5, 127.5, 127.5}},
      {.mean = {1, 2, 3}, .std = {3, 7, 49}},
      {.mean = {100, 100, 100}, .std = {1e7, 3e5, 1e9}},
      {.mean = {3.3, 200.1, 0}, .std = {0.001, 0.0039, 1e-30}},
  };
  RandomStream random(1, 0, 0, RandomUse::test);
  for (int i = 0; i < 40; ++i) {
    NormalizeOptions drawn;
    for (std::size_t c = 0; c < 3; ++c) {
      drawn.mean[c] = random.uniform(0, 255);
      drawn.std[c] = random.uniform(0.5, 200);
    }
    options.push_back(drawn);
  }
  return options;
}

/// The result of the same computation on a float32 tensor in torch.
float expected_value(const NormalizeOptions& options, std::uint8_t pixel, std::size_t c) {
  const volatile float difference = static_cast<float>(pixel) - static_cast<float>(options.mean[c]);
  return difference / static_cast<float>(options.std[c]);
}

TEST(WritePixelsTest, Float32IsTheFormulaBitForBit) {
  const Image image = all_values();
  for (const NormalizeOptions& options : all_options()) {
    const Normalize normalize(options);
    test::for_each_simd_target([&](const char* target) {
      const auto got = written<float>(image, {ElementType::f32, false, &normalize});
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]),
                  std::bit_cast<std::uint32_t>(expected_value(options, image.pixels[i], i % 3)))
            << target << " " << i;
      }
    });
  }
}

TEST(WritePixelsTest, HalvesAreTheNearestToFloat32) {
  const Image image = all_values();
  for (const NormalizeOptions& options : all_options()) {
    const Normalize normalize(options);
    test::for_each_simd_target([&](const char*) {
      const auto half = written<std::uint16_t>(image, {ElementType::f16, false, &normalize});
      const auto bfloat = written<std::uint16_t>(image, {ElementType::bf16, false, &normalize});
      for (std::size_t i = 0; i < half.size(); ++i) {
        const float exact = expected_value(options, image.pixels[i], i % 3);
        expect_nearest_even(bfloat[i], exact, bfloat16_value);
        if (std::abs(exact) >= 65520) {  // halfway between 65504, the largest float16, and 65536
          EXPECT_EQ(half[i] & 0x7FFF, 0x7C00);
        } else if (std::abs(exact) > 65504) {
          EXPECT_EQ(half[i] & 0x7FFF, 0x7BFF);
        } else if (half_value(half[i] & 0x7FFF) < 65504) {
          expect_nearest_even(half[i], exact, half_value);
        }
      }
    });
  }
}

TEST(WritePixelsTest, WithoutNormalizeFloatsAreThePixels) {
  const Image image = all_values();
  const auto f32 = written<float>(image, {ElementType::f32});
  const auto f16 = written<std::uint16_t>(image, {ElementType::f16});
  const auto bf16 = written<std::uint16_t>(image, {ElementType::bf16});
  EXPECT_EQ(written<std::uint8_t>(image, {}), image.pixels);
  for (std::size_t i = 0; i < f32.size(); ++i) {
    EXPECT_EQ(f32[i], image.pixels[i]);
    EXPECT_EQ(half_value(f16[i]), image.pixels[i]);
    EXPECT_EQ(bfloat16_value(bf16[i]), image.pixels[i]);
  }
}

template <typename T>
void expect_planes(const Image& image, const PixelFormat& interleaved) {
  PixelFormat planar = interleaved;
  planar.channels_first = true;
  const auto expected = written<T>(image, interleaved);
  test::for_each_simd_target([&](const char* target) {
    const auto got = written<T>(image, planar);
    const std::size_t pixels = got.size() / 3;
    for (std::size_t p = 0; p < pixels; ++p) {
      for (std::size_t c = 0; c < 3; ++c) {
        ASSERT_EQ(got[c * pixels + p], expected[3 * p + c]) << target << " " << p;
      }
    }
  });
}

TEST(WritePixelsTest, ChannelsFirstHoldsTheSameValues) {
  const Normalize normalize({});
  for (const int width : {1, 5, 31, 64, 1100}) {
    Image image(3, width);
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      image.pixels[i] = static_cast<std::uint8_t>(i * 37 >> 3);
    }
    expect_planes<std::uint8_t>(image, {});
    expect_planes<float>(image, {ElementType::f32, false, &normalize});
    expect_planes<std::uint16_t>(image, {ElementType::f16, false, &normalize});
    expect_planes<std::uint16_t>(image, {ElementType::bf16, false, &normalize});
  }
}

TEST(WritePixelsTest, RowsOfAWindowAreWrittenToTheirPositions) {
  Image large(9, 20);
  for (std::size_t i = 0; i < large.pixels.size(); ++i) {
    large.pixels[i] = static_cast<std::uint8_t>(i * 7);
  }
  const ImageView window{large.view().row(2) + 3 * 4, 5, 11, large.view().stride};
  for (const bool channels_first : {false, true}) {
    const PixelFormat format{ElementType::f32, channels_first};
    std::vector<float> whole(5 * 11 * 3), parts(5 * 11 * 3);
    write_pixels(window, format, reinterpret_cast<std::byte*>(whole.data()));
    for (int y = 0; y < 5; ++y) {
      write_rows({window.row(y), 1, 11, window.stride}, y, 5, format,
                 reinterpret_cast<std::byte*>(parts.data()));
    }
    EXPECT_EQ(parts, whole);
    EXPECT_EQ(whole[1], window.row(0)[channels_first ? 3 : 1]);
  }
}

TEST(WritePixelsTest, RefusesTypesThatPixelsDoNotHave) {
  const Image image = all_values();
  std::vector<double> out(image.pixels.size());
  EXPECT_THROW(
      write_pixels(image.view(), {ElementType::f64}, reinterpret_cast<std::byte*>(out.data())),
      std::exception);
}

TEST(NormalizeTest, TheCheapFormulasSufficeForImageNet) {
  const Normalize normalize({});
  EXPECT_NE(normalize.f32_formula(), Normalize::Formula::table);
  EXPECT_EQ(normalize.f16_formula(), Normalize::Formula::line);
}

}  // namespace
}  // namespace precast::data
