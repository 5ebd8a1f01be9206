#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "data/sources/register.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/opened.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::image_of;
using test::label_of;
using test::Names;
using test::opener;
using testing::ThrowsMessage;

std::vector<std::byte> idx(std::uint32_t magic, const std::vector<std::uint32_t>& shape,
                           std::size_t bytes) {
  std::vector<std::byte> file;
  const auto append = [&file](std::uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8)
      file.push_back(static_cast<std::byte>(number >> shift));
  };
  append(magic);
  for (const std::uint32_t size : shape) append(size);
  for (std::size_t i = 0; i < bytes; ++i) file.push_back(static_cast<std::byte>(i % 10));
  return file;
}

void write_gzip(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

TEST(IdxSource, ReadsPairsPlainAndGzipped) {
  const test::TemporaryFolder folder;
  const auto images = idx(0x803, {12, 3, 5}, 180);
  const auto labels = idx(0x801, {12}, 12);
  const auto check = [](const Source& source) {
    ASSERT_EQ(source.size(), 12U);
    EXPECT_EQ(source.class_names().size(), 10U);
    const Sample sample = source.sample(11);
    EXPECT_EQ(label_of(sample), 1);
    const Image& image = image_of(sample).pixels;
    ASSERT_EQ(image.height, 3);
    ASSERT_EQ(image.width, 5);
    for (std::size_t p = 0; p < 15; ++p) {
      for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(image.pixels[3 * p + c], (11 * 15 + p) % 10);
      }
    }
  };
  test::write_bytes(folder / "train-images-idx3-ubyte", images);
  test::write_bytes(folder / "train-labels-idx1-ubyte", labels);
  check(*open_source(folder / "train-images-idx3-ubyte"));
  write_gzip(folder / "t10k-images-idx3-ubyte.gz", images);
  write_gzip(folder / "t10k-labels-idx1-ubyte.gz", labels);
  check(*open_source(folder / "t10k-images-idx3-ubyte.gz"));
  // One file is plain and one is compressed. Their names have the other spelling, with `.idx3`
  // instead of `-idx3`.
  test::write_bytes(folder / "x-images.idx3-ubyte", images);
  write_gzip(folder / "x-labels.idx1-ubyte.gz", labels);
  check(*open_source(folder / "x-images.idx3-ubyte"));
}

TEST(IdxSource, RefusesSizesThatDoNotMatch) {
  const test::TemporaryFolder folder;
  const std::filesystem::path images = folder / "a-images-idx3-ubyte";
  const std::filesystem::path labels = folder / "a-labels-idx1-ubyte";
  const auto expect = [&](const std::vector<std::byte>& image_bytes,
                          const std::vector<std::byte>& label_bytes, const auto&... facts) {
    test::write_bytes(images, image_bytes);
    test::write_bytes(labels, label_bytes);
    EXPECT_THAT(opener(images), ThrowsMessage<DataError>(Names(folder.path(), facts...)));
  };
  const auto good = idx(0x803, {4, 2, 2}, 16);
  const auto good_labels = idx(0x801, {4}, 4);
  expect(idx(0x803, {4, 2, 2}, 15), good_labels, images, 32, 31);
  expect(idx(0x803, {4, 2, 2}, 17), good_labels, images, 32);
  expect(idx(0x802, {4, 2}, 8), good_labels, images, "0x803", "0x802");
  expect(idx(0x803, {0, 2, 2}, 0), good_labels, images, "[0, 2, 2]");
  expect(idx(0x803, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, 10), good_labels, images,
         "[4294967295, 4294967295, 4294967295]");
  expect(idx(0x803, {0xFFFFFFFF, 0xFFFF, 2}, 10), good_labels, images, 26);
  expect(good, idx(0x801, {3}, 3), 4, 3);
  expect(good, good, labels, "0x801", "0x803");
  std::filesystem::remove(labels);
  test::write_bytes(images, good);
  EXPECT_THAT(opener(images), ThrowsMessage<DataError>(Names(images, labels)));
}

TEST(IdxSource, AFileShorterThanItsHeaderIsAnErrorWithBothSizes) {
  const test::TemporaryFolder folder;
  const std::filesystem::path images = folder / "a-images-idx3-ubyte";
  const std::filesystem::path labels = folder / "a-labels-idx1-ubyte";
  const auto expect = [&](const std::vector<std::byte>& whole, std::size_t size,
                          const std::filesystem::path& path, std::size_t header_bytes) {
    test::write_bytes(path, std::span(whole).first(size));
    EXPECT_THAT(opener(images), ThrowsMessage<DataError>(Names(path, header_bytes, size)));
  };
  const auto whole_images = idx(0x803, {4, 2, 2}, 16);
  const auto whole_labels = idx(0x801, {4}, 4);
  test::write_bytes(labels, whole_labels);
  for (const std::size_t size : {0, 3, 4, 15}) expect(whole_images, size, images, 16);
  test::write_bytes(images, whole_images);
  for (const std::size_t size : {1, 4, 7}) expect(whole_labels, size, labels, 8);
}

TEST(IdxSource, RefusesADamagedGzipFile) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "a-images-idx3-ubyte.gz";
  write_gzip(path, idx(0x803, {400, 20, 20}, 160000));
  write_gzip(folder / "a-labels-idx1-ubyte.gz", idx(0x801, {400}, 400));
  EXPECT_NO_THROW(opener(path)());
  const std::vector<std::byte> whole = test::read_bytes(path);
  for (std::size_t size = 2; size < whole.size() - 8; size += 5) {
    test::write_bytes(path, std::span(whole).first(size));
    EXPECT_THROW(opener(path)(), DataError) << size;
  }
}

}  // namespace
}  // namespace precast::data
