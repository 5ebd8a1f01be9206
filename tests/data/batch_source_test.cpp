#include "data/batch_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSizePx = 24;

class BatchSourceTest : public ::testing::Test {
 protected:
  void open(const std::string& golden) {
    test::write_bytes(folder_ / "x.beton", test::golden_beton(golden));
    reader_.emplace(folder_ / "x.beton");
  }
  std::unique_ptr<BatchSource> source(at::Device device, const FieldChoice& fields = {}) {
    LoaderOptions options;
    options.batch_size = 5;
    options.workers = 2;
    options.order = make_order(*reader_, {.name = "random"});
    return make_batch_source(*reader_, standard_train_pipeline(), options, fields, device,
                             at::kFloat);
  }
  std::vector<Batch> all(BatchSource& source) {
    source.begin_epoch({.epoch = 1, .image_size_px = kSizePx});
    std::vector<Batch> batches;
    while (auto batch = source.next()) batches.push_back(std::move(*batch));
    return batches;
  }
  test::TemporaryFolder folder_;
  std::optional<BetonReader> reader_;
};

TEST_F(BatchSourceTest, ImagesAreChannelsLastViewsAndLabelsAreIntegers) {
  open("img_jpg_w3");
  const auto train = source(at::kCPU);
  EXPECT_EQ(train->size(/*world=*/1), 6);
  EXPECT_EQ(train->samples(), 26);
  auto batches = all(*train);
  ASSERT_EQ(batches.size(), 6U);
  EXPECT_EQ(batches[0].images().sizes(), (std::vector<std::int64_t>{5, 3, kSizePx, kSizePx}));
  EXPECT_TRUE(batches[0].images().is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(batches[0].images().scalar_type(), at::kFloat);
  EXPECT_EQ(batches[5].size(), 1);
  for (Batch& batch : batches) {
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(batch.labels()[i].item<std::int64_t>(),
                reader_->integer(batch.sample_ids[static_cast<std::size_t>(i)], 1));
    }
  }
}

TEST_F(BatchSourceTest, TheLabelMayStandBeforeTheImage) {
  open("img_smart_w3");
  auto batches = all(*source(at::kCPU));
  EXPECT_EQ(batches[0].images().dim(), 4);
  EXPECT_EQ(batches[0].labels().dim(), 1);
}

TEST_F(BatchSourceTest, MissingFieldsAreNamed) {
  open("scalars_only");
  try {
    source(at::kCPU);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected an RGB image field, got none"));
  }
  open("img_jpg_w3");
  EXPECT_THROW(source(at::kCPU, {.image = "", .label = "lable"}), DataError);
  EXPECT_THROW(source(at::kCPU, {.image = "label", .label = ""}), DataError);
}

}  // namespace
}  // namespace precast::data
