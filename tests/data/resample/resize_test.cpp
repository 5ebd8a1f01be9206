#include "data/resample/resize.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image/normalize.h"
#include "framework/core/archive/npy.h"
#include "tests/support/noise.h"
#include "tests/support/paths.h"
#include "tests/support/simd_targets.h"

namespace precast::data {
namespace {

Image noise_image(int height, int width, std::uint32_t seed) {
  Image image(height, width);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    const double value = test::noise(seed, static_cast<std::uint32_t>(i));
    image.pixels[i] = static_cast<std::uint8_t>((value + 0.5) * 256);
  }
  return image;
}

Image resized(const ImageView& in, int height, int width, ResizeFilter filter, bool flip = false) {
  Image out(height, width);
  Resizer().resize(in, height, width, flip, filter, {},
                   reinterpret_cast<std::byte*>(out.pixels.data()));
  return out;
}

constexpr ResizeFilter kFilters[] = {ResizeFilter::area, ResizeFilter::bilinear,
                                     ResizeFilter::antialias};
/// {height, width, resized height, resized width}
constexpr int kSizes[][4] = {
    {64, 64, 32, 32}, {64, 48, 20, 31},   {37, 53, 36, 52}, {20, 30, 32, 32},  {20, 60, 32, 32},
    {1, 1, 5, 5},     {1, 40, 1, 7},      {90, 90, 32, 90}, {7, 7, 7, 7},      {200, 3, 32, 32},
    {33, 65, 32, 64}, {512, 340, 99, 80}, {2, 2, 1, 1},     {5, 4, 176, 3},    {300, 200, 2, 1},
    {9, 200, 30, 11}, {40, 41, 40, 17},   {50, 60, 61, 59}, {3, 1000, 5, 333}, {90, 6, 90, 5}};

/// An input pixel that contributes to an output pixel along one axis, and its weight. area_taps()
/// and area_mapped_taps() follow the definition of OpenCV's INTER_AREA.
struct Tap {
  int source;
  double weight;
};

std::vector<Tap> area_taps(int d, int source, int outputs) {
  const double scale = static_cast<double>(source) / outputs;
  std::vector<Tap> taps;
  for (int s = 0; s < source; ++s) {
    const double covered =
        std::min<double>(s + 1, (d + 1) * scale) - std::max<double>(s, d * scale);
    if (covered > 1e-3) taps.push_back({s, covered / scale});
  }
  return taps;
}

std::vector<Tap> area_mapped_taps(int d, int source, int outputs) {
  const double scale = static_cast<double>(source) / outputs;
  const int s = static_cast<int>(std::floor(d * scale));
  double fraction = (d + 1) - (s + 1) / scale;
  fraction = fraction <= 0 ? 0 : fraction - std::floor(fraction);
  if (s >= source - 1) return {{source - 1, 1.0}};
  return {{s, 1 - fraction}, {s + 1, fraction}};
}

/// The taps of a triangle around the centre of the output pixel.
std::vector<Tap> triangle_taps(int d, int source, int outputs, double reach) {
  const double centre = (d + 0.5) * source / outputs;
  std::vector<Tap> taps;
  double sum = 0;
  for (int s = 0; s < source; ++s) {
    const double height = 1 - std::abs(s + 0.5 - centre) / reach;
    if (height > 0) taps.push_back({s, height});
    sum += std::max(height, 0.0);
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

std::vector<Tap> reference_taps(ResizeFilter filter, bool shrinks, int d, int source, int outputs) {
  const double scale = static_cast<double>(source) / outputs;
  switch (filter) {
    case ResizeFilter::area:
      return shrinks ? area_taps(d, source, outputs) : area_mapped_taps(d, source, outputs);
    case ResizeFilter::bilinear: {
      // At an edge, the weight of the part of the triangle outside the image goes to the edge
      // pixel. The result is the same as normalising the weights.
      return triangle_taps(d, source, outputs, 1.0);
    }
    case ResizeFilter::antialias:
      return triangle_taps(d, source, outputs, std::max(scale, 1.0));
  }
  return {};
}

/// The largest difference from the results of the formulas, in levels.
double largest_difference(const Image& in, const Image& out, ResizeFilter filter) {
  const bool shrinks = out.height <= in.height && out.width <= in.width;
  double worst = 0;
  for (int y = 0; y < out.height; ++y) {
    const auto rows = reference_taps(filter, shrinks, y, in.height, out.height);
    for (int x = 0; x < out.width; ++x) {
      const auto columns = reference_taps(filter, shrinks, x, in.width, out.width);
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        for (const Tap& row : rows) {
          for (const Tap& column : columns) {
            sum += row.weight * column.weight * in.view().row(row.source)[3 * column.source + c];
          }
        }
        worst = std::max(worst, std::abs(sum - out.view().row(y)[3 * x + c]));
      }
    }
  }
  return worst;
}

std::string describe(const int (&size)[4], ResizeFilter filter) {
  return fmt::format("{}x{} -> {}x{}, filter {}", size[0], size[1], size[2], size[3],
                     static_cast<int>(filter));
}

TEST(ResizerTest, FollowsTheFormulasForAllKindsOfScale) {
  for (const ResizeFilter filter : kFilters) {
    for (const auto& size : kSizes) {
      const Image in = noise_image(size[0], size[1], 3);
      const Image out = resized(in.view(), size[2], size[3], filter);
      // Half a level is due to rounding, the rest to OpenCV's fixed-point arithmetic.
      EXPECT_LT(largest_difference(in, out, filter), 0.9) << describe(size, filter);
    }
  }
}

/// Noise images that peers resized (tests/golden/resize).
class PeerPixels {
 public:
  explicit PeerPixels(const std::string& peer)
      : pixels_(read_npy(folder() + peer + ".npy").bytes),
        cases_(read_npy(folder() + "cases.npy")) {}

  struct Difference {
    int largest = 0;
    double share = 0;
  };

  /// Calls check(what, whether an axis grows, difference) for each case.
  template <typename Check>
  void compare(ResizeFilter filter, Check check) const {
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < cases_.shape[0]; ++i) {
      int size[4];
      std::memcpy(size, cases_.bytes.data() + sizeof size * i, sizeof size);
      const Image in = noise_image(size[0], size[1], i);
      const Image out = resized(in.view(), size[2], size[3], filter);
      Difference difference;
      for (const std::uint8_t value : out.pixels) {
        const int apart = std::abs(value - static_cast<int>(pixels_[at++]));
        difference.largest = std::max(difference.largest, apart);
        if (apart != 0) difference.share += 1.0 / static_cast<double>(out.pixels.size());
      }
      check(describe(size, filter), size[2] > size[0] || size[3] > size[1], difference);
    }
    EXPECT_EQ(at, pixels_.size());
  }

 private:
  static std::string folder() { return test::golden_dir() + "/resize/"; }
  std::vector<std::byte> pixels_;
  NpyArray cases_;
};

TEST(ResizerTest, AreaIsThatOfOpenCV) {
  PeerPixels("opencv_area")
      .compare(ResizeFilter::area, [](const std::string& what, bool grows, auto difference) {
        EXPECT_LE(difference.largest, grows ? 0 : 1) << what;
        EXPECT_LE(difference.share, 0.1) << what;  // mostly rounding ties
      });
}

TEST(ResizerTest, BilinearIsThatOfOpenCV) {
  PeerPixels("opencv_linear")
      .compare(ResizeFilter::bilinear, [](const std::string& what, bool, auto difference) {
        EXPECT_EQ(difference.largest, 0) << what;
      });
}

TEST(ResizerTest, BilinearAndAntialiasAreWithinOneLevelOfTorchAndPillow) {
  const auto check = [](const std::string& what, bool, auto difference) {
    EXPECT_LE(difference.largest, 1) << what;
  };
  PeerPixels("torch_bilinear").compare(ResizeFilter::bilinear, check);
  PeerPixels("torch_antialias").compare(ResizeFilter::antialias, check);
  PeerPixels("pillow_bilinear").compare(ResizeFilter::antialias, check);
}

TEST(ResizerTest, SameSizeIsACopy) {
  const Image in = noise_image(31, 17, 4);
  for (const ResizeFilter filter : kFilters) {
    EXPECT_EQ(resized(in.view(), 31, 17, filter).pixels, in.pixels);
  }
}

TEST(ResizerTest, FlipIsTheMirrorImageExactly) {
  for (const ResizeFilter filter : kFilters) {
    for (const auto& size : kSizes) {
      const Image in = noise_image(size[0], size[1], 5);
      const Image plain = resized(in.view(), size[2], size[3], filter);
      Image mirrored(plain.height, plain.width);
      for (int y = 0; y < plain.height; ++y) {
        for (int x = 0; x < plain.width; ++x) {
          std::copy_n(plain.view().row(y) + 3 * (plain.width - 1 - x), 3,
                      mirrored.pixels.begin() + 3 * (y * plain.width + x));
        }
      }
      EXPECT_EQ(resized(in.view(), size[2], size[3], filter, true).pixels, mirrored.pixels)
          << describe(size, filter);
    }
  }
}

TEST(ResizerTest, ConstantImagesStayConstant) {
  for (const ResizeFilter filter : kFilters) {
    for (const int level : {0, 1, 127, 254, 255}) {
      Image in(61, 47);
      std::ranges::fill(in.pixels, static_cast<std::uint8_t>(level));
      for (const int side : {1, 7, 30, 47, 100}) {
        const Image out = resized(in.view(), side, side, filter);
        EXPECT_TRUE(std::ranges::all_of(out.pixels,
                                        [&](int value) {
                                          return std::abs(value - level) <=
                                                 (side > 47 ? 1 : 0);  // OpenCV loses one level
                                        }))
            << side << " " << level;
      }
    }
  }
}

TEST(ResizerTest, ReadsAWindowOfALargerImage) {
  const Image large = noise_image(50, 60, 6);
  Image window(20, 24);
  for (int y = 0; y < 20; ++y) {
    std::copy_n(large.view().row(y + 11) + 3 * 13, 24 * 3, window.pixels.begin() + y * 24 * 3);
  }
  const ImageView view{large.view().row(11) + 3 * 13, 20, 24, large.view().stride};
  for (const int side : {16, 31}) {
    EXPECT_EQ(resized(view, side, side, ResizeFilter::area).pixels,
              resized(window.view(), side, side, ResizeFilter::area).pixels);
  }
}

/// In a batch, the next image follows directly, so nothing may be written beyond an image.
TEST(ResizerTest, WritesEachFormatAsWritePixelsDoesAndNothingBeyond) {
  const Normalize normalize({});
  Resizer resizer;
  for (const auto& size : kSizes) {
    const Image in = noise_image(size[0], size[1], 7);
    const Image pixels = resized(in.view(), size[2], size[3], ResizeFilter::area, true);
    for (const ElementType type :
         {ElementType::u8, ElementType::f32, ElementType::f16, ElementType::bf16}) {
      for (const bool channels_first : {false, true}) {
        const PixelFormat format{type, channels_first, &normalize};
        const std::size_t bytes = format.image_bytes(size[2], size[3]);
        std::vector<std::byte> expected(bytes + 64, std::byte{0xAB});
        std::vector<std::byte> got = expected;
        write_pixels(pixels.view(), format, expected.data());
        resizer.resize(in.view(), size[2], size[3], true, ResizeFilter::area, format, got.data());
        EXPECT_EQ(got, expected) << describe(size, ResizeFilter::area);
        EXPECT_TRUE(std::all_of(got.begin() + static_cast<std::ptrdiff_t>(bytes), got.end(),
                                [](std::byte value) { return value == std::byte{0xAB}; }));
      }
    }
  }
}

TEST(ResizerTest, StreamedImagesAreTheSameAndNothingBeyond) {
  const Normalize normalize({});
  Resizer resizer;
  constexpr std::size_t kLine = 64;
  for (const auto& size : kSizes) {
    const Image in = noise_image(size[0], size[1], 10);
    for (const ElementType type : {ElementType::u8, ElementType::f32, ElementType::f16}) {
      PixelFormat format{type, false, &normalize};
      std::vector<std::byte> expected(format.image_bytes(size[2], size[3]));
      resizer.resize(in.view(), size[2], size[3], true, ResizeFilter::area, format,
                     expected.data());
      format.streamed = true;
      test::for_each_simd_target([&](const char* target) {
        // The output begins at a cache line, or inside a cache line shared with another image.
        for (const std::size_t at : {std::size_t{0}, std::size_t{4}}) {
          std::vector<std::byte> room(expected.size() + 3 * kLine, std::byte{0xAB});
          void* start = room.data();
          std::size_t left = room.size();
          std::byte* out =
              static_cast<std::byte*>(std::align(kLine, expected.size(), start, left)) + at;
          resizer.resize(in.view(), size[2], size[3], true, ResizeFilter::area, format, out);
          hwy::FlushStream();
          EXPECT_TRUE(std::ranges::equal(std::span(out, expected.size()), expected))
              << target << " " << describe(size, ResizeFilter::area) << " at " << at;
          EXPECT_EQ(std::ranges::count(room, std::byte{0xAB}) -
                        std::ranges::count(expected, std::byte{0xAB}),
                    std::ssize(room) - std::ssize(expected));
        }
      });
    }
  }
}

/// The planes of an image, each row followed by bytes that must not affect results.
class Planes {
 public:
  explicit Planes(const Image& image) : image_(image), stride_(image.width + 5) {
    const auto rows = static_cast<std::size_t>(image.height) * static_cast<std::size_t>(stride_);
    for (std::size_t c = 0; c < 3; ++c) {
      bytes_[c].assign(rows, static_cast<std::uint8_t>(0xA0 + c));
      for (int y = 0; y < image.height; ++y) {
        for (int x = 0; x < image.width; ++x)
          bytes_[c][static_cast<std::size_t>(y) * static_cast<std::size_t>(stride_) +
                    static_cast<std::size_t>(x)] = image.view().row(y)[3 * x + static_cast<int>(c)];
      }
    }
  }
  [[nodiscard]] PlanarView view() const {
    return {{bytes_[0].data(), bytes_[1].data(), bytes_[2].data()},
            image_.height,
            image_.width,
            stride_};
  }

 private:
  const Image& image_;
  int stride_;
  std::array<std::vector<std::uint8_t>, 3> bytes_;
};

std::vector<std::byte> resized_as(const auto& in, const int (&size)[4], ResizeFilter filter,
                                  bool flip, const PixelFormat& format, Resizer& resizer) {
  std::vector<std::byte> out(format.image_bytes(size[2], size[3]) + 64, std::byte{0xAB});
  resizer.resize(in, size[2], size[3], flip, filter, format, out.data());
  return out;
}

TEST(ResizerTest, PlanesGiveTheBytesOfPixels) {
  const Normalize normalize({});
  const PixelFormat formats[] = {{},
                                 {ElementType::f16, false, &normalize},
                                 {ElementType::f32, false, &normalize},
                                 {ElementType::f16, true, &normalize}};
  Resizer resizer;
  for (const ResizeFilter filter : kFilters) {
    for (const auto& size : kSizes) {
      const Image in = noise_image(size[0], size[1], 9);
      const Planes planes(in);
      for (const PixelFormat& format : formats) {
        for (const bool flip : {false, true}) {
          EXPECT_EQ(resized_as(planes.view(), size, filter, flip, format, resizer),
                    resized_as(in.view(), size, filter, flip, format, resizer))
              << describe(size, filter);
        }
      }
    }
  }
}

/// Uses sizes of crops and images as in training, and somewhat beyond.
TEST(ResizerTest, PlanesGiveTheBytesOfPixelsForRandomCropsOnEveryInstructionSet) {
  constexpr std::size_t kCrops = 3000;
  Resizer resizer;
  std::size_t preferred = 0;
  const auto from = [](std::size_t crop, std::uint32_t what, int low, int high) {
    const double value = test::noise(what, static_cast<std::uint32_t>(crop)) + 0.5;
    return std::clamp(low + static_cast<int>(value * (high - low + 1)), low, high);
  };
  for (std::size_t crop = 0; crop < kCrops; ++crop) {
    const int most = crop % 8 == 0 ? 700 : 260;
    const int size[4] = {from(crop, 21, 1, most), from(crop, 22, 1, most), from(crop, 23, 1, 200),
                         from(crop, 24, 1, 200)};
    const ResizeFilter filter = crop % 3 == 0 ? kFilters[crop / 3 % 3] : ResizeFilter::area;
    const bool flip = crop % 2 == 1;
    const Image in = noise_image(size[0], size[1], static_cast<std::uint32_t>(crop));
    const Planes planes(in);
    const auto expected = resized_as(in.view(), size, filter, flip, {}, resizer);
    test::for_each_simd_target([&](const char* target) {
      EXPECT_EQ(resized_as(planes.view(), size, filter, flip, {}, resizer), expected)
          << target << " " << describe(size, filter) << " flip " << flip;
    });
    preferred += Resizer::prefers_planes(size[0], size[1], size[2], size[3], filter) ? 1 : 0;
  }
  // On CPUs without AVX-512, planes are preferred for fewer sizes.
  EXPECT_GT(preferred, kCrops / 20);
}

TEST(ResizerTest, PrefersPlanesForWeighedAverages) {
  EXPECT_TRUE(Resizer::prefers_planes(200, 220, 176, 176, ResizeFilter::area));
  EXPECT_TRUE(Resizer::prefers_planes(200, 220, 176, 176, ResizeFilter::antialias));
  EXPECT_FALSE(Resizer::prefers_planes(200, 220, 176, 176, ResizeFilter::bilinear));
  EXPECT_FALSE(Resizer::prefers_planes(100, 120, 176, 176, ResizeFilter::area));
  EXPECT_FALSE(Resizer::prefers_planes(176, 176, 176, 176, ResizeFilter::area));
  EXPECT_FALSE(Resizer::prefers_planes(9000, 9000, 176, 176, ResizeFilter::area));
}

TEST(ResizerTest, EveryInstructionSetGivesTheSame) {
  std::size_t targets = 0;
  for (const ResizeFilter filter : kFilters) {
    for (const auto& size : kSizes) {
      const Image in = noise_image(size[0], size[1], 8);
      const Image expected = resized(in.view(), size[2], size[3], filter);
      targets = test::for_each_simd_target([&](const char* target) {
        EXPECT_EQ(resized(in.view(), size[2], size[3], filter).pixels, expected.pixels)
            << target << " " << describe(size, filter);
      });
    }
  }
  EXPECT_GE(std::popcount(static_cast<std::uint64_t>(HWY_TARGETS)), 2)
      << "this build has only one instruction set";
  if (targets < 2) GTEST_SKIP() << "this CPU has only one of the instruction sets";
}

}  // namespace
}  // namespace precast::data
