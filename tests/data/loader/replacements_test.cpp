// Tests how damaged samples are replaced while a dataset is loaded.
#include "data/loader/replacements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

class ReplacementsTest : public ::testing::Test {
 protected:
  /// Writes FFCV's 26 JPEGs, and overwrites the JPEG headers of these samples.
  void damage(const std::set<std::uint64_t>& samples) {
    std::vector<std::byte> bytes = test::golden_beton("img_jpg_w3");
    const BetonReader reader({bytes.data(), bytes.size()}, "golden");
    for (const std::uint64_t sample : samples)
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(reader.blob_offset(sample, 0)), 40,
                  std::byte{0});
    test::write_bytes(path_, bytes);
  }

  struct Pass {
    std::vector<std::uint64_t> ids;
    std::vector<std::int64_t> labels;
    std::vector<std::uint8_t> pixels;
    LoaderStatistics statistics;
  };
  Pass pass(int workers = 2, BlobAccess access = BlobAccess::mapped,
            OnCorrupt on_corrupt = OnCorrupt::replace) const {
    const BetonReader reader(path_, access);
    LoaderOptions options;
    options.batch_size = 5;
    options.workers = workers;
    options.on_corrupt = on_corrupt;
    options.order = make_order(reader, {.name = "random"});
    Loader loader(reader, standard_train_pipeline(), options);
    Pass all;
    for (const std::int64_t epoch : {0, 1}) {
      loader.begin_epoch({.epoch = epoch, .image_size_px = 24});
      while (const auto batch = loader.next()) {
        all.ids.insert(all.ids.end(), batch->sample_ids.begin(), batch->sample_ids.end());
        const auto pixels = batch->fields[0].values<std::uint8_t>();
        all.pixels.insert(all.pixels.end(), pixels.begin(), pixels.end());
        const auto labels = batch->fields[1].values<std::int64_t>();
        all.labels.insert(all.labels.end(), labels.begin(), labels.end());
      }
    }
    all.statistics = loader.statistics();
    return all;
  }

  test::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "x.beton";
};

TEST_F(ReplacementsTest, TheNextIntactSampleReplacesItAndIsListed) {
  damage({3, 4, 25});
  EXPECT_THAT([&] { (void)pass(2, BlobAccess::mapped, OnCorrupt::fail); },
              ThrowsMessage<DataError>(Names(path_, "sample", "'image'")));
  const Pass all = pass();
  ASSERT_THAT(all.ids, SizeIs(52));
  const BetonReader reader(path_);
  for (std::size_t i = 0; i < all.ids.size(); ++i)
    EXPECT_EQ(all.labels[i], reader.integer(all.ids[i], 1));
  EXPECT_EQ(std::ranges::count(all.ids, 5), 6);
  EXPECT_EQ(std::ranges::count(all.ids, 0), 4);
  for (const std::uint64_t bad : {3, 4, 25}) EXPECT_EQ(std::ranges::count(all.ids, bad), 0);
  const auto& replaced = all.statistics.replaced;
  ASSERT_THAT(replaced, SizeIs(3));
  EXPECT_EQ(replaced[0].sample, 3U);
  EXPECT_EQ(replaced[0].by, 5U);
  EXPECT_EQ(replaced[0].times, 2);
  EXPECT_THAT(replaced[0].error, Names("sample 3", "'image'"));
  EXPECT_EQ(replaced[1].by, 5U);
  EXPECT_EQ(replaced[2].by, 0U);
}

TEST_F(ReplacementsTest, StatisticsCountTheBytesOfTheReplacement) {
  damage({3, 4, 25});
  const BetonReader reader(path_);
  ASSERT_NE(reader.blob_bytes(3, 0), reader.blob_bytes(5, 0));
  for (const BlobAccess access : {BlobAccess::mapped, BlobAccess::on_disk}) {
    const Pass all = pass(2, access);
    std::uint64_t bytes = 0;
    for (const std::uint64_t id : all.ids) bytes += reader.blob_bytes(id, 0);
    EXPECT_EQ(all.statistics.stored_bytes, bytes);
    EXPECT_EQ(all.statistics.samples, 52);
  }
}

TEST_F(ReplacementsTest, BatchesDoNotDependOnThreadsAndAccess) {
  damage({0, 1, 2, 7, 8, 12, 24, 25});
  const Pass one = pass(1);
  const auto same = [&one](const Pass& other) {
    EXPECT_EQ(one.ids, other.ids);
    EXPECT_EQ(one.pixels, other.pixels);
  };
  same(pass(4));
  same(pass(3, BlobAccess::on_disk));
  try {
    same(pass(2, BlobAccess::on_disk_direct));
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), Names("direct_io"));
  }
}

TEST_F(ReplacementsTest, AFileWithoutIntactSamplesIsAnError) {
  std::set<std::uint64_t> all;
  for (std::uint64_t i = 0; i < 26; ++i) all.insert(i);
  damage(all);
  for (const int workers : {1, 4}) {
    EXPECT_THAT([&] { (void)pass(workers); }, ThrowsMessage<DataError>(Names(26)));
  }
}

TEST_F(ReplacementsTest, ASampleThatFailsOnlyInUseStillReplacesOthers) {
  std::set<std::uint64_t> all_but_5;
  for (std::uint64_t i = 0; i < 26; ++i)
    if (i != 5) all_but_5.insert(i);
  damage(all_but_5);
  const BetonReader reader(path_);
  Replacements replacements(reader, resolve_outputs(reader, standard_train_pipeline(), false), {},
                            false);
  EXPECT_EQ(replacements.replace(3, "damaged"), 5U);
  EXPECT_THAT([&] { (void)replacements.replace(5, "sample 5: damaged"); },
              testing::ThrowsMessage<DataError>(testing::StrEq("sample 5: damaged")));
  EXPECT_EQ(replacements.replace(4, "damaged"), 5U);
  EXPECT_EQ(replacements.replace(9, "damaged"), 5U);
}

TEST_F(ReplacementsTest, IntactFilesHaveNoReplacements) {
  damage({});
  EXPECT_THAT(pass().statistics.replaced, IsEmpty());
}

TEST_F(ReplacementsTest, ChecksumsFindWhatDecodersDoNot) {
  // Only a checksum detects a changed pixel of a raw image.
  const std::vector<std::byte> golden = test::golden_beton("img_raw_w1");
  test::write_bytes(path_, golden);
  write_sums_sidecar(BetonReader(path_));
  std::vector<std::byte> bytes = golden;
  const std::uint64_t at = BetonReader(golden, "golden").blob_offset(6, 0);
  bytes[at + 100] ^= std::byte{1};
  test::write_bytes(path_, bytes);
  const BetonReader reader(path_);
  const auto run = [&reader](bool verify, OnCorrupt on_corrupt) {
    LoaderOptions options;
    options.verify = verify;
    options.on_corrupt = on_corrupt;
    Loader loader(reader, standard_val_pipeline(), options);
    loader.begin_epoch({.image_size_px = 24});
    while (loader.next()) {
    }
    return loader.statistics().replaced;
  };
  EXPECT_THAT(run(false, OnCorrupt::fail), IsEmpty());
  try {
    (void)run(true, OnCorrupt::fail);
    ADD_FAILURE() << "expected an error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), Names(path_, "sample 6", "'image'"));
    EXPECT_EQ(test::occurrences(error.what(), path_.string()), 1) << error.what();
  }
  const auto replaced = run(true, OnCorrupt::replace);
  ASSERT_THAT(replaced, SizeIs(1));
  EXPECT_EQ(replaced[0].sample, 6U);
  EXPECT_EQ(replaced[0].by, 7U);
}

TEST_F(ReplacementsTest, AReplacementsNumberMayFitOnlyAfterItsTransforms) {
  class LastDigit final : public LabelTransform {
   public:
    [[nodiscard]] std::int64_t apply(std::int64_t label, std::uint64_t /*sample*/) const override {
      return label % 10;
    }
  };
  test::write_made_beton(path_, {.samples = 4, .classes = 20'000'000'000, .sorted = true});
  std::vector<std::byte> bytes = test::read_bytes(path_);
  const std::uint64_t at = BetonReader(path_).blob_offset(1, 0);
  bytes[at] ^= std::byte{1};
  test::write_bytes(path_, bytes);
  const BetonReader reader(path_);
  ASSERT_EQ(reader.integer(2, 1), 10'000'000'000);
  Pipeline pipeline = standard_val_pipeline();
  pipeline.outputs = {{.name = "image", .field = "image", .image = pipeline.images},
                      {.name = "label",
                       .field = "label",
                       .labels = {std::make_shared<LastDigit>()},
                       .type = ElementType::i32}};
  LoaderOptions options;
  options.verify = true;
  options.on_corrupt = OnCorrupt::replace;
  Loader loader(reader, pipeline, options);
  loader.begin_epoch({.image_size_px = 16});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->sample_ids, testing::ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(batch->fields[1].values<std::int32_t>(), testing::ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace precast::data
