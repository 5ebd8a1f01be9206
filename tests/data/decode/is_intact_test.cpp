#include <gtest/gtest.h>

#include <cstdio>
// jpeglib.h needs std::FILE and std::size_t declared before it.
#include <jpeglib.h>

#include <random>

#include "data/beton/reader.h"
#include "data/decode/jpeg_decoder.h"
#include "data/image/image_file.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"

namespace precast::data {
namespace {

using Bytes = std::vector<std::byte>;

/// The JPEGs of a file that FFCV wrote.
class JpegInOrderTest : public testing::Test {
 protected:
  [[nodiscard]] Bytes jpeg(std::uint64_t sample) const {
    const auto bytes = reader_.image(sample, 0).bytes;
    return {bytes.begin(), bytes.end()};
  }
  bool is_intact(std::uint64_t sample, const Bytes& bytes) {
    const ImageRecord record = reader_.image(sample, 0);
    return decoder_.is_intact(bytes, record.height, record.width);
  }
  Bytes file_ = test::golden_beton("img_jpg_w3");
  BetonReader reader_{file_, "golden.beton"};
  JpegDecoder decoder_;
};

/// Whether libjpeg decodes the complete image without a warning.
bool decodes_without_warning(const Bytes& bytes) {
  Image image;
  try {
    return decode_image_file(bytes, image).warnings == 0;
  } catch (const DataError&) {
    return false;
  }
}

TEST_F(JpegInOrderTest, IntactJpegsAreInOrderOnlyForTheirOwnSize) {
  for (std::uint64_t sample = 0; sample < reader_.size(); ++sample) {
    const Bytes whole = jpeg(sample);
    EXPECT_TRUE(is_intact(sample, whole)) << sample;
    const ImageRecord record = reader_.image(sample, 0);
    EXPECT_FALSE(decoder_.is_intact(whole, record.height + 1, record.width));
  }
}

TEST_F(JpegInOrderTest, TruncatedAndExtendedJpegsAreNotInOrder) {
  const Bytes whole = jpeg(3);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(is_intact(3, cut)) << size;
  }
  Bytes longer = whole;
  longer.insert(longer.end() - 2, {std::byte{7}, std::byte{7}});
  EXPECT_FALSE(is_intact(3, longer));
}

TEST_F(JpegInOrderTest, JpegsWithLibjpegWarningsAreNotInOrder) {
  std::mt19937 random(11);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t sample = random() % reader_.size();
    Bytes damaged = jpeg(sample);
    damaged[random() % damaged.size()] ^= static_cast<std::byte>(1U << random() % 8);
    if (!is_intact(sample, damaged)) continue;
    ++accepted;
    EXPECT_TRUE(decodes_without_warning(damaged)) << i;
  }
  EXPECT_GT(accepted, 100);
}

/// A colour JPEG of noise. In each direction, luma has `sampling` times as many samples as chroma.
/// The scan is long enough to be read from two positions at the same time.
Bytes noisy_jpeg(int height, int width, int sampling) {
  std::mt19937 random(5);
  std::vector<unsigned char> samples(static_cast<std::size_t>(height * width) * 3);
  for (unsigned char& sample : samples) sample = static_cast<unsigned char>(random());
  return test::encode_jpeg(samples, height, width, 3, [&](jpeg_compress_struct& state) {
    state.comp_info[0].h_samp_factor = sampling;
    state.comp_info[0].v_samp_factor = sampling;
  });
}

TEST(JpegInOrder, DamageAtTheMeetingPointAndAtTheEndIsDetected) {
  constexpr int kHeight = 80, kWidth = 120;
  JpegDecoder decoder;
  int accepted = 0;
  for (const int sampling : {1, 2}) {
    Bytes jpeg = noisy_jpeg(kHeight, kWidth, sampling);
    ASSERT_GT(jpeg.size(), 5000U);
    ASSERT_TRUE(decoder.is_intact(jpeg, kHeight, kWidth));
    for (const std::size_t first : {jpeg.size() / 2 - 100, jpeg.size() - 500}) {
      for (std::size_t at = first; at < first + 500 && at < jpeg.size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
          const std::byte original = jpeg[at];
          jpeg[at] ^= static_cast<std::byte>(1U << bit);
          if (decoder.is_intact(jpeg, kHeight, kWidth)) {
            ++accepted;
            ASSERT_TRUE(decodes_without_warning(jpeg)) << at << " bit " << bit;
          }
          jpeg[at] = original;
        }
      }
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace precast::data
