#include "data/loader/sample_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "data/beton/reader.h"
#include "data/image/luma.h"
#include "data/transforms/center_crop.h"
#include "data/transforms/fixed_crop.h"
#include "framework/core/archive/npy.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/decode/synthetic_jpeg.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

NpyArray golden(const std::string& name) {
  return read_npy(test::golden_dir() + "/pixels/" + name + ".npy");
}

/// Compares with pixels that the real FFCV produced from its own files (tests/golden/pixels).
class FfcvPixelsTest : public ::testing::TestWithParam<const char*> {
 protected:
  FfcvPixelsTest() {
    test::write_bytes(folder_ / "x.beton", test::golden_beton(GetParam()));
    reader_.emplace(folder_ / "x.beton");
    field_ = reader_->first_field(FieldType::image);
  }

  /// Decodes a sample. @return the largest difference of a value from `expected`, in levels.
  int difference(const ImagePipeline& pipeline, std::uint64_t sample, int size_px,
                 const std::byte* expected) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size_px * size_px) * 3);
    SampleDecoder decoder(pipeline, 0);
    decoder.decode(reader_->image(sample, field_),
                   {.sample = sample, .position = sample, .epoch = 0}, size_px, pixels.data());
    int worst = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i)
      worst = std::max(worst, std::abs(pixels[i] - static_cast<int>(expected[i])));
    return worst;
  }

  test::TemporaryFolder folder_;
  std::optional<BetonReader> reader_;
  std::size_t field_ = 0;
};

TEST_P(FfcvPixelsTest, CentreCropsAreWithinOneLevel) {
  const NpyArray expected = golden(std::string(GetParam()) + ".center_64");
  const ImagePipeline pipeline{
      .crop = std::make_shared<CenterCrop>(0.875), .flip_probability = 0, .normalize = {}};
  for (std::int64_t sample = 0; sample < expected.shape[0]; ++sample) {
    EXPECT_LE(difference(pipeline, static_cast<std::uint64_t>(sample), 64,
                         expected.bytes.data() + sample * 64 * 64 * 3),
              1)
        << sample;
  }
}

TEST_P(FfcvPixelsTest, FixedWindowsAreWithinOneLevel) {
  const NpyArray windows = golden(std::string(GetParam()) + ".windows");
  const NpyArray expected = golden(std::string(GetParam()) + ".windows_96");
  ASSERT_EQ(windows.dtype, DType::i64);
  for (std::int64_t w = 0; w < windows.shape[0]; ++w) {
    std::int64_t row[5];  // sample, row0, row1, column0, column1
    std::memcpy(row, windows.bytes.data() + w * 40, sizeof(row));
    const Rect window{static_cast<int>(row[1]), static_cast<int>(row[3]),
                      static_cast<int>(row[2] - row[1]), static_cast<int>(row[4] - row[3])};
    const ImagePipeline pipeline{
        .crop = std::make_shared<FixedCrop>(window), .flip_probability = 0, .normalize = {}};
    EXPECT_LE(difference(pipeline, static_cast<std::uint64_t>(row[0]), 96,
                         expected.bytes.data() + w * 96 * 96 * 3),
              1)
        << w;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, FfcvPixelsTest,
                         ::testing::Values("img_jpg_w3", "img_raw_w1", "img_smart_w3",
                                           "img_prop_nette_w1"));

/// Loads regions of one JPEG: without an index, while an index is filled, then with this index.
class LoadedJpeg {
 public:
  LoadedJpeg(const test::SyntheticJpeg& kind, int channels)
      : kind_(kind), file_(test::encode(kind)) {
    pipeline_.channels = channels;
  }

  void load(ResizeFilter filter, const Rect& region, int side, bool flip, PixelFormat format) {
    pipeline_.crop = std::make_shared<FixedCrop>(region);
    pipeline_.flip_probability = flip ? 1 : 0;
    pipeline_.filter = filter;
    (Resizer::prefers_planes(region.height, region.width, side, side, filter) ? from_planes
                                                                              : from_pixels) += 1;
    const std::vector<std::byte> expected = decoded_and_resized(region, side, flip, format);
    const ImageRecord image{
        .mode = ImageMode::jpg, .width = kind_.width, .height = kind_.height, .bytes = file_};
    JpegIndex index(1, 4, 1 << 20);
    for (JpegIndex* used : {static_cast<JpegIndex*>(nullptr), &index, &index}) {
      SampleDecoder decoder(pipeline_, 0, {}, {.options = {}, .index = used});
      std::vector<std::byte> out(expected.size());
      decoder.decode(image, {}, side, format, out.data());
      ASSERT_EQ(out, expected);
    }
    ASSERT_EQ(index.find(0).empty(), kind_.progressive);
  }

  int from_planes = 0, from_pixels = 0;

 private:
  /// The image that libjpeg decodes, resized from interleaved pixels.
  std::vector<std::byte> decoded_and_resized(const Rect& region, int side, bool flip,
                                             PixelFormat format) {
    JpegDecoder decoder({.libjpeg_only = true, .luma_only = pipeline_.channels == 1});
    const ImageView pixels = decoder.decode(file_, kind_.height, kind_.width, region);
    Resizer resizer;
    if (pipeline_.channels == 3) {
      std::vector<std::byte> out(format.image_bytes(side, side));
      resizer.resize(pixels, side, side, flip, pipeline_.filter, format, out.data());
      return out;
    }
    Image grey(side, side);
    resizer.resize(pixels, side, side, flip, pipeline_.filter, {},
                   reinterpret_cast<std::byte*>(grey.pixels.data()));
    luma_of(grey.pixels.data(), grey.pixels.size() / 3, grey.pixels.data());
    format.channels = 1;
    std::vector<std::byte> out(format.image_bytes(side, side));
    write_pixels({grey.pixels.data(), side, side, side}, format, out.data());
    return out;
  }

  test::SyntheticJpeg kind_;
  std::vector<std::byte> file_;
  ImagePipeline pipeline_;
};

TEST(SampleDecoderTest, JpegsGiveTheBytesOfInterleavedPixels) {
  const Normalize normalize({}), normalize_grey({.mean = {100}, .std = {50}});
  constexpr ResizeFilter kFilters[] = {ResizeFilter::area, ResizeFilter::bilinear,
                                       ResizeFilter::antialias};
  for (const test::SyntheticJpeg& kind :
       {test::SyntheticJpeg{.height = 129, .width = 195},
        test::SyntheticJpeg{.height = 97, .width = 130, .rows = 1},
        test::SyntheticJpeg{.height = 97, .width = 131, .columns = 1, .rows = 1},
        test::SyntheticJpeg{.height = 161, .width = 167, .columns = 0},
        test::SyntheticJpeg{.height = 161, .width = 167, .progressive = true}}) {
    for (const int channels : {3, 1}) {
      const Normalize* const with = channels == 3 ? &normalize : &normalize_grey;
      const PixelFormat formats[] = {
          {}, {ElementType::f16, false, with}, {ElementType::f32, true, with}};
      LoadedJpeg jpeg(kind, channels);
      for (int trial = 0; trial < 60; ++trial) {
        SCOPED_TRACE(testing::Message() << testing::PrintToString(kind) << ", " << channels
                                        << " channels, trial " << trial);
        jpeg.load(kFilters[trial % 3], test::region_of(kind, trial), trial % 2 == 0 ? 24 : 60,
                  trial % 4 < 2, formats[trial / 3 % 3]);
        if (testing::Test::HasFatalFailure()) return;
      }
      EXPECT_GE(jpeg.from_planes, 1);
      EXPECT_GE(jpeg.from_pixels, 1);
    }
  }
}

}  // namespace
}  // namespace precast::data
