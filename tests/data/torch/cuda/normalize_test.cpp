// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "data/torch/cuda/normalize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "data/image/normalize.h"
#include "tests/support/kernel_device.h"

namespace precast::data {
namespace {

/// A block computes 1024 values (341 1/3 pixels), a thread 4 values (1 1/3 pixels).
constexpr std::size_t kPixels[] = {1, 2, 3, 4, 5, 7, 8, 85, 340, 341, 342, 682, 683, 1000, 4096};
constexpr std::size_t kGuard = 16;

std::vector<std::uint8_t> random_pixels(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> pixels(count * 3);
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random());
  return pixels;
}

NormalizeConstants constants_of(const NormalizeOptions& options) {
  NormalizeConstants constants{};
  for (std::size_t c = 0; c < 3; ++c) {
    constants.mean[c] = static_cast<float>(options.mean[c]);
    constants.std[c] = static_cast<float>(options.std[c]);
  }
  return constants;
}

/// A type of results: its PixelType, its values in Normalize, and the largest relative error
/// allowed for a result.
struct F32 {
  using Bits = std::uint32_t;
  static constexpr PixelType kType = PixelType::f32;
  static constexpr double kTolerance = 0x1p-23;
  static Bits reference(const Normalize& normalize, std::size_t channel, std::uint8_t pixel) {
    return std::bit_cast<Bits>(normalize.f32()[channel][pixel]);
  }
  static double value(Bits bits) { return double{std::bit_cast<float>(bits)}; }
};
struct F16 {
  using Bits = std::uint16_t;
  static constexpr PixelType kType = PixelType::f16;
  static constexpr double kTolerance = 0x1.002p-11;
  static Bits reference(const Normalize& normalize, std::size_t channel, std::uint8_t pixel) {
    return normalize.f16()[channel][pixel];
  }
  static double value(Bits bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = (bits & 1023) / 1024.0;
    const double magnitude = exponent == 0   ? std::ldexp(fraction, -14)
                             : exponent < 31 ? std::ldexp(1 + fraction, exponent - 15)
                                             : NAN;
    return (bits >> 15) != 0 ? -magnitude : magnitude;
  }
};
struct Bf16 {
  using Bits = std::uint16_t;
  static constexpr PixelType kType = PixelType::bf16;
  static constexpr double kTolerance = 0x1.002p-8;
  static Bits reference(const Normalize& normalize, std::size_t channel, std::uint8_t pixel) {
    return normalize.bf16()[channel][pixel];
  }
  static double value(Bits bits) {
    return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)};
  }
};

template <typename Type>
class NormalizeKernelTest : public test::DeviceTest {
 protected:
  using Bits = typename Type::Bits;
  /// For each order of threads: calls check(values) with the kernel's results for these pixels.
  template <typename Check>
  void run(const std::vector<std::uint8_t>& pixels, std::size_t skipped_pixels, Check check) {
    const test::DeviceArray<std::uint8_t> in(pixels);
    const std::size_t count = pixels.size() - 3 * skipped_pixels;
    test::in_several_orders([&] {
      const test::DeviceArray<Bits> out(kGuard + count + kGuard);
      normalize(in.data() + 3 * skipped_pixels, count, constants_of(options_), Type::kType,
                out.data() + kGuard, nullptr);
      const std::vector<Bits> all = out.values();
      for (std::size_t i = 0; i < kGuard; ++i) {
        ASSERT_EQ(all[i], static_cast<Bits>(-1)) << "written before the first value";
        ASSERT_EQ(all[kGuard + count + i], static_cast<Bits>(-1)) << "written after the last value";
      }
      check(std::span(all).subspan(kGuard, count));
    });
  }
  NormalizeOptions options_;
};
using Types = ::testing::Types<F32, F16, Bf16>;
TYPED_TEST_SUITE(NormalizeKernelTest, Types);

TYPED_TEST(NormalizeKernelTest, GivesTheBitsOfTheCpuForAnyNumberOfPixels) {
  const Normalize normalize(this->options_);
  for (const std::size_t count : kPixels) {
    const std::vector<std::uint8_t> pixels = random_pixels(count);
    this->run(pixels, 0, [&](auto values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], TypeParam::reference(normalize, i % 3, pixels[i]))
            << "value " << i << " of " << count << " pixels";
      }
    });
  }
}

TYPED_TEST(NormalizeKernelTest, IsAsCloseToDoublePrecisionAsItsTypeAllows) {
  std::vector<std::uint8_t> pixels;  // each value in each channel
  for (int value = 0; value < 256; ++value)
    pixels.insert(pixels.end(), 3, static_cast<std::uint8_t>(value));
  const NormalizeConstants constants = constants_of(this->options_);
  this->run(pixels, 0, [&](auto values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double exact =
          (pixels[i] - double{constants.mean[i % 3]}) / double{constants.std[i % 3]};
      ASSERT_NEAR(TypeParam::value(values[i]), exact, std::abs(exact) * TypeParam::kTolerance)
          << "value " << int{pixels[i]} << " of channel " << i % 3;
    }
  });
}

TYPED_TEST(NormalizeKernelTest, TakesPixelsAlignedToFourBytes) {
  const Normalize normalize(this->options_);
  const std::vector<std::uint8_t> pixels = random_pixels(104);
  this->run(pixels, 4, [&](auto values) {  // starts at byte 12, which is not a multiple of 8
    ASSERT_EQ(values.size(), 300u);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], TypeParam::reference(normalize, i % 3, pixels[12 + i])) << "value " << i;
    }
  });
}

TYPED_TEST(NormalizeKernelTest, NormalisesOneChannelWithThreeEqualConstants) {
  const NormalizeOptions luma = NormalizeOptions::of_luma();
  this->options_ = {.mean = std::vector(3, luma.mean[0]), .std = std::vector(3, luma.std[0])};
  const Normalize normalize(luma);
  for (const std::size_t count : {1U, 5U, 256U, 1003U}) {
    std::vector<std::uint8_t> pixels = random_pixels(count);
    pixels.resize(count);  // not a multiple of 3
    this->run(pixels, 0, [&](auto values) {
      ASSERT_EQ(values.size(), count);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], TypeParam::reference(normalize, 0, pixels[i])) << i << " of " << count;
    });
  }
}

TYPED_TEST(NormalizeKernelTest, LaunchesNothingForNoPixels) {
  this->run({}, 0, [](auto values) { EXPECT_TRUE(values.empty()); });
}

}  // namespace
}  // namespace precast::data
