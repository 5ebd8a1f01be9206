// kernels_bench: measures crop, resize, flip and conversion in microseconds per image on one core,
// with crops of FFCV's training distribution (scale 0.08 to 1). Not a test and not installed:
//     ninja -C build kernels_bench && build/bin/kernels_bench [area|bilinear|antialias]
// raw-256 uses 64 images, so that the pixels come from memory, as when reading a file; jpeg-512
// uses 4 images, so that they are still in the cache, as after decoding. For the columns "planes"
// and "f16 pl.", crops for which Resizer::prefers_planes() is true are read from three colour
// planes instead of interleaved pixels.

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "data/image/normalize.h"
#include "data/resample/resize.h"
#include "data/transforms/random_resized_crop.h"
#include "framework/core/rng.h"
#include "tools/cli/cpu.h"
#include "tools/cli/stopwatch.h"

namespace precast::tools {
namespace {

using data::Image;
using data::ImageView;
using data::Rect;

constexpr int kCrops = 256;
constexpr int kPasses = 25;

struct CropMix {
  std::string_view name;
  std::vector<Image> images;
  /// The planes of each image, one after the other.
  std::vector<std::vector<std::uint8_t>> planes;
  std::vector<Rect> crops;
};

/// Images of noise with the given longer side and the shapes of ImageNet's photos: half of them
/// 4:3, a quarter 3:4, a quarter 3:2.
CropMix make_mix(std::string_view name, int longer_px, int image_count) {
  CropMix mix{name, {}, {}, {}};
  RandomStream random(1, 0, 0, RandomUse::test);
  for (int i = 0; i < image_count; ++i) {
    const int shorter = i % 4 == 3 ? longer_px * 2 / 3 : longer_px * 3 / 4;
    Image image = i % 4 == 2 ? Image(longer_px, shorter) : Image(shorter, longer_px);
    for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random.next_u32());
    const std::size_t pixels = image.pixels.size() / 3;
    std::vector<std::uint8_t>& planes = mix.planes.emplace_back(image.pixels.size());
    for (std::size_t at = 0; at < image.pixels.size(); ++at)
      planes[at % 3 * pixels + at / 3] = image.pixels[at];
    mix.images.push_back(std::move(image));
  }
  const data::RandomResizedCrop crop;
  for (std::size_t i = 0; i < kCrops; ++i) {
    const Image& image = mix.images[i % mix.images.size()];
    RandomStream draws(2, 0, i, RandomUse::crop);
    mix.crops.push_back(crop.choose(image.height, image.width, draws));
  }
  return mix;
}

ImageView view_of(const CropMix& mix, std::size_t i) {
  const Image& image = mix.images[i % mix.images.size()];
  const Rect& crop = mix.crops[i];
  return {image.view().row(crop.row) + std::ptrdiff_t{3} * crop.column, crop.height, crop.width,
          image.view().stride};
}

data::PlanarView planes_of(const CropMix& mix, std::size_t i) {
  const Image& image = mix.images[i % mix.images.size()];
  const Rect& crop = mix.crops[i];
  const std::uint8_t* first = mix.planes[i % mix.images.size()].data() +
                              std::ptrdiff_t{image.width} * crop.row + crop.column;
  const std::size_t pixels = image.pixels.size() / 3;
  return {{first, first + pixels, first + 2 * pixels}, crop.height, crop.width, image.width};
}

data::DecodedPixels preferred_of(const CropMix& mix, std::size_t i, int side,
                                 data::ResizeFilter filter) {
  const Rect& crop = mix.crops[i];
  if (data::Resizer::prefers_planes(crop.height, crop.width, side, side, filter))
    return planes_of(mix, i);
  return view_of(mix, i);
}

/// Returns the mean time per crop in the fastest pass, the one that other programs disturbed least.
template <typename Resize>
double us_per_image(const CropMix& mix, Resize resize) {
  std::vector<double> passes;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double begin = thread_cpu_seconds();
    for (std::size_t i = 0; i < mix.crops.size(); ++i) resize(i, i % 2 == 1);
    const double us = (thread_cpu_seconds() - begin) * 1e6;
    passes.push_back(us / static_cast<double>(mix.crops.size()));
  }
  return *std::ranges::min_element(passes);
}

void run(data::ResizeFilter filter) {
  const CropMix mixes[] = {make_mix("raw-256", 256, 64), make_mix("jpeg-512", 512, 4)};
  const data::Normalize normalize({});
  data::Resizer resizer;
  fmt::print("us/image   size  {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "u8", "f16", "bf16",
             "f32", "f16 CHW", "planes", "f16 pl.");
  for (const CropMix& mix : mixes) {
    for (const int side : {160, 176, 224}) {
      fmt::print("{:9} {:5} ", mix.name, side);
      for (const data::PixelFormat& format :
           {data::PixelFormat{}, data::PixelFormat{data::ElementType::f16, false, &normalize},
            data::PixelFormat{data::ElementType::bf16, false, &normalize},
            data::PixelFormat{data::ElementType::f32, false, &normalize},
            data::PixelFormat{data::ElementType::f16, true, &normalize}}) {
        std::vector<std::byte> out(format.image_bytes(side, side));
        fmt::print(" {:8.1f}", us_per_image(mix, [&](std::size_t i, bool flip) {
                     resizer.resize(view_of(mix, i), side, side, flip, filter, format, out.data());
                   }));
      }
      for (const data::PixelFormat& format :
           {data::PixelFormat{}, data::PixelFormat{data::ElementType::f16, false, &normalize}}) {
        std::vector<std::byte> out(format.image_bytes(side, side));
        fmt::print(" {:8.1f}", us_per_image(mix, [&](std::size_t i, bool flip) {
                     resizer.resize(preferred_of(mix, i, side, filter), side, side, flip, filter,
                                    format, out.data());
                   }));
      }
      fmt::print("\n");
    }
  }
}

}  // namespace
}  // namespace precast::tools

int main(int argc, char** argv) {
  using precast::data::ResizeFilter;
  const std::string_view name = argc > 1 ? argv[1] : "area";
  if (argc > 2 || (name != "area" && name != "bilinear" && name != "antialias")) {
    fmt::print(stderr, "kernels_bench: expected area, bilinear or antialias, got '{}'{}\n", name,
               argc > 2 ? " and more arguments" : "");
    return 2;
  }
  fmt::print("{}\n", precast::tools::cpu_text(precast::tools::cpu_facts()));
  precast::tools::run(name == "bilinear"    ? ResizeFilter::bilinear
                      : name == "antialias" ? ResizeFilter::antialias
                                            : ResizeFilter::area);
}
