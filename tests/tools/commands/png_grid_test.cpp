#include "tools/commands/png_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data/image/image_file.h"
#include "framework/core/file.h"
#include "tests/support/temporary_folder.h"
#include "tools/commands/bitmap_font.h"

namespace precast::tools {
namespace {

/// The result of draw_text() on a black image of `width` x 8 px: one string per row, with `#` for
/// each pixel that is not black.
std::vector<std::string> drawn(std::string_view text, std::size_t width) {
  std::vector<std::uint8_t> pixels(width * 8 * 3);
  draw_text({pixels, width, 8}, 0, 0, text, width, 255);
  std::vector<std::string> rows(8, std::string(width, ' '));
  for (std::size_t i = 0; i < width * 8; ++i)
    if (pixels[i * 3] != 0) rows[i / width][i % width] = '#';
  return rows;
}

TEST(BitmapFont, DrawsLetters) {
  EXPECT_THAT(drawn("Lg", 12),
              testing::ElementsAre("#           ", "#           ", "#      ###  ", "#     #  ## ",
                                   "#     #  ## ", "#      ## # ", "#####     # ", "       ###  "));
}

TEST(BitmapFont, WhatDoesNotFitIsCutOffAndOtherCharactersAreQuestionMarks) {
  EXPECT_EQ(drawn("abcdef", 24), drawn("ab..", 24));
  EXPECT_EQ(drawn("sämple", 36), drawn("s?mple", 36));
  EXPECT_EQ(drawn("abc", 3), drawn("", 3));
  std::vector<std::uint8_t> pixels(4 * 4 * 3);
  draw_text({pixels, 4, 4}, 2, 2, "W", 100, 255);  // must not write outside the image
}

TEST(PngGrid, ACaptionIsUnderItsImage) {
  const test::TemporaryFolder folder;
  // Two white images of 10 x 10 px.
  const std::vector<std::uint8_t> images(std::size_t{2} * 10 * 10 * 3, 255);
  const auto read = [&](const std::vector<Caption>& captions) {
    write_png_grid(folder / "grid.png", images, 10, captions);
    data::Image image;
    (void)data::decode_image_file(read_file(folder / "grid.png"), image);
    return image;
  };
  const data::Image plain = read({});
  EXPECT_EQ(plain.width, 2 * 12 + 2);
  EXPECT_EQ(plain.height, 12 + 2);
  const data::Image grid = read({{"cats", "#3"}, {"dogs", "#5"}});
  EXPECT_EQ(grid.width, 2 * 98 + 2);
  EXPECT_EQ(grid.height, 10 + 2 * 9 + 2 + 2);
  const auto pixel = [&](int x, int y) {
    return grid.pixels[static_cast<std::size_t>((y * grid.width + x) * 3)];
  };
  EXPECT_EQ(pixel(2, 2), 255);
  EXPECT_EQ(pixel(98 + 2 + 9, 11), 255);
  const auto lit = [&](int left, int top) {
    int count = 0;
    for (int y = top; y < top + 9; ++y)
      for (int x = left; x < left + 24; ++x) count += pixel(x, y) > 100 ? 1 : 0;
    return count;
  };
  EXPECT_GT(lit(2, 13), 20);
  EXPECT_GT(lit(2, 22), 10);
  EXPECT_GT(lit(100, 13), 20);
}

}  // namespace
}  // namespace precast::tools
