// Compares the Y plane of JPEGs with the output of libjpeg for JCS_GRAYSCALE.
#include <gtest/gtest.h>

#include "data/decode/jpeg_decoder.h"
#include "framework/core/error.h"
#include "tests/data/decode/synthetic_jpeg.h"

namespace precast::data {
namespace {

using test::JpegKind;
using test::SyntheticJpeg;

/// The complete image as libjpeg decodes it to grey, with each value repeated three times.
std::vector<std::uint8_t> grey_by_libjpeg(const std::vector<std::byte>& file, bool accurate) {
  jpeg_decompress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&state);
  jpeg_mem_src(&state, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&state, TRUE);
  state.out_color_space = JCS_GRAYSCALE;
  state.dct_method = accurate ? JDCT_ISLOW : JDCT_IFAST;
  jpeg_start_decompress(&state);
  std::vector<std::uint8_t> pixels, row(state.output_width);
  while (state.output_scanline < state.output_height) {
    JSAMPROW row_pointer = row.data();
    jpeg_read_scanlines(&state, &row_pointer, 1);
    for (const std::uint8_t value : row) pixels.insert(pixels.end(), 3, value);
  }
  jpeg_finish_decompress(&state);
  jpeg_destroy_decompress(&state);
  return pixels;
}

void expect_libjpegs(const std::vector<std::byte>& file, const SyntheticJpeg& kind, bool own) {
  for (const bool accurate : {false, true}) {
    const std::vector<std::uint8_t> whole = grey_by_libjpeg(file, accurate);
    JpegDecoder decoder({.accurate_dct = accurate, .luma_only = true});
    JpegDecoder other({.accurate_dct = accurate, .libjpeg_only = true, .luma_only = true});
    std::vector<std::uint64_t> points;
    const Rect all{0, 0, kind.height, kind.width};
    (void)decoder.decode(file, kind.height, kind.width, all, 4, points);
    EXPECT_EQ(!points.empty(), own);
    for (int trial = 0; trial < 12; ++trial) {
      const Rect region = test::region_of(kind, trial);
      const std::vector<std::uint8_t> expected = test::cut(whole, kind.width, region);
      const auto decoded = [&](JpegDecoder& by, const JpegCheckpoints& from) {
        return test::copy_of(by.decode(file, kind.height, kind.width, region, from));
      };
      const auto as_planes = [&](const JpegCheckpoints& from) {
        return test::copy_of(decoder.decode_planes(file, kind.height, kind.width, region, from));
      };
      ASSERT_EQ(decoded(decoder, {}), expected) << trial;
      ASSERT_EQ(decoded(other, {}), expected) << trial;
      ASSERT_EQ(as_planes({}), expected) << trial;
      if (own) {
        ASSERT_EQ(as_planes({.interval = 4, .points = points}), expected) << trial;
        ASSERT_EQ(decoded(decoder, {.interval = 4, .points = points}), expected) << trial;
      }
    }
  }
}

class LumaOfMadeJpegs : public ::testing::TestWithParam<SyntheticJpeg> {};

TEST_P(LumaOfMadeJpegs, IsLibjpegsGreyOfEveryRegion) {
  expect_libjpegs(test::encode(GetParam()), GetParam(),
                  !GetParam().progressive && GetParam().restart_interval == 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LumaOfMadeJpegs,
                         ::testing::Values(SyntheticJpeg{},
                                           SyntheticJpeg{.height = 119, .width = 203},
                                           SyntheticJpeg{.columns = 1, .rows = 1},
                                           SyntheticJpeg{.width = 77, .columns = 2, .rows = 1},
                                           SyntheticJpeg{.columns = 0},
                                           SyntheticJpeg{.optimized = true},
                                           SyntheticJpeg{.restart_interval = 3},
                                           SyntheticJpeg{.height = 90, .progressive = true}));

TEST(LumaOnly, ColoursThatAreStoredAsRgbGiveTheirLumaAndCmykIsRefused) {
  const SyntheticJpeg kind{.height = 40, .width = 48};
  const auto rgb =
      test::encode_jpeg(test::noisy_samples(kind, 3), kind.height, kind.width, 3,
                        [](jpeg_compress_struct& state) { jpeg_set_colorspace(&state, JCS_RGB); });
  expect_libjpegs(rgb, kind, /*own=*/false);
  const auto cmyk = test::jpeg_file(test::gradient(40, 48), JpegKind::cmyk);
  JpegDecoder decoder({.luma_only = true});
  EXPECT_THROW((void)decoder.decode(cmyk, 40, 48, {0, 0, 8, 8}), DataError);
}

}  // namespace
}  // namespace precast::data
