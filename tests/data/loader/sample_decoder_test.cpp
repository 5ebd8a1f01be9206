#include "data/loader/sample_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "data/beton/reader.h"
#include "data/transforms/center_crop.h"
#include "data/transforms/fixed_crop.h"
#include "framework/core/archive/npy.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

NpyArray golden(const std::string& name) {
  return read_npy(std::string(PRECAST_GOLDEN_DIR) + "/pixels/" + name + ".npy");
}

/// Against pixels that the real FFCV produced from its own files (tests/golden/pixels).
class FfcvPixelsTest : public ::testing::TestWithParam<const char*> {
 protected:
  FfcvPixelsTest() {
    test::write_bytes(folder_ / "x.beton", test::golden_beton(GetParam()));
    reader_.emplace(folder_ / "x.beton");
    field_ = reader_->first_field(FieldType::image);
  }

  /// The largest difference from `expected`, one image, in levels.
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

}  // namespace
}  // namespace precast::data
