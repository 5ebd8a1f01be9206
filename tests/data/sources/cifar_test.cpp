#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

/// A CIFAR file: each record has its label bytes, then three planes. Value p of plane c in record i
/// is 80 c + (p + i) % 50.
std::vector<std::byte> cifar(std::size_t records, std::size_t label_bytes) {
  std::vector<std::byte> file;
  for (std::size_t i = 0; i < records; ++i) {
    if (label_bytes == 2) file.push_back(static_cast<std::byte>(i % 20));
    file.push_back(static_cast<std::byte>(label_bytes == 2 ? 99 - i : i % 10));
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t p = 0; p < 1024; ++p)
        file.push_back(static_cast<std::byte>(c * 80 + (p + i) % 50));
    }
  }
  return file;
}

TEST(CifarSource, ReadsFoldersAndFiles) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "data_batch_2.bin", cifar(3, 1));
  test::write_bytes(folder / "data_batch_1.bin", cifar(5, 1));
  test::write_bytes(folder / "test_batch.bin", cifar(4, 1));
  const std::string names = "plane\ncar\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
  test::write_bytes(folder / "batches.meta.txt", std::as_bytes(std::span(names)));
  const auto train = open_source(folder.path());
  ASSERT_EQ(train->size(), 8U);
  EXPECT_EQ(train->class_names()[9], "truck");
  const Sample sample = train->sample(6);  // The second record of data_batch_2.
  EXPECT_THAT(sample.name, Names("data_batch_2.bin[1]"));
  EXPECT_EQ(label_of(sample), 1);
  const Image& image = image_of(sample).pixels;
  ASSERT_EQ(image.width, 32);
  ASSERT_EQ(image.height, 32);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_EQ(image.pixels[i], i % 3 * 80 + (i / 3 + 1) % 50) << i;
  }
  EXPECT_EQ(open_source(folder / "test_batch.bin")->size(), 4U);
}

TEST(CifarSource, ReadsTheFineLabelsOfCifar100) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "train.bin", cifar(6, 2));
  const auto source = open_source(folder.path());
  ASSERT_EQ(source->size(), 6U);
  EXPECT_EQ(source->class_names().size(), 100U);
  EXPECT_EQ(label_of(source->sample(5)), 94);
  EXPECT_EQ(image_of(source->sample(5)).pixels.pixels[0], 5);
}

TEST(CifarSource, RefusesWrongSizesAndLabels) {
  const test::TemporaryFolder folder;
  auto file = cifar(2, 1);
  file.pop_back();
  test::write_bytes(folder / "data_batch_1.bin", file);
  EXPECT_THAT(opener(folder.path()),
              ThrowsMessage<DataError>(Names(folder / "data_batch_1.bin", 3073, 6145)));
  file = cifar(2, 1);
  file[3073] = std::byte{10};
  test::write_bytes(folder / "data_batch_1.bin", file);
  EXPECT_THAT(opener(folder.path()),
              ThrowsMessage<DataError>(Names(folder / "data_batch_1.bin", "record 1", 10)));
}

}  // namespace
}  // namespace precast::data
