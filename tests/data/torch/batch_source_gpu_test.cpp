// Compares the batches of the GPU with those of the CPU.
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <atomic>

#include "data/torch/batch_source.h"
#include "data/torch/device_images.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

class BatchSourceGpuTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU that libtorch can use";
  }
  std::vector<Batch> batches(const BetonReader& reader, at::Device device, at::ScalarType dtype,
                             std::int64_t size_px, bool plan_images = false) {
    LoaderOptions options;
    options.plan_images = plan_images;
    options.batch_size = 5;
    options.workers = 2;
    options.order = make_order(reader, {.name = "random"});
    const auto source =
        make_batch_source(reader, standard_train_pipeline(), options, {}, device, dtype);
    source->begin_epoch({.epoch = 1, .image_size_px = size_px});
    std::vector<Batch> batches;
    while (auto batch = source->next()) batches.push_back(std::move(*batch));
    return batches;
  }
  test::TemporaryFolder folder_;
};

TEST_P(BatchSourceGpuTest, AreThoseOfTheCpuRounded) {
  test::write_bytes(folder_ / "x.beton", test::golden_beton("img_jpg_w3"));
  const BetonReader reader(folder_ / "x.beton");
  // With 25 px and one image in the last batch, the number of values is not a multiple of 4.
  for (const std::int64_t size_px : {24, 25}) {
    auto expected = batches(reader, at::kCPU, at::kFloat, size_px);
    auto found = batches(reader, at::Device(at::kCUDA, 0), GetParam(), size_px);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t b = 0; b < found.size(); ++b) {
      EXPECT_TRUE(found[b].images().is_contiguous(at::MemoryFormat::ChannelsLast));
      EXPECT_TRUE(found[b].images().cpu().equal(expected[b].images().to(GetParam())))
          << "batch " << b << ", " << size_px << " px";
      EXPECT_TRUE(found[b].labels().cpu().equal(expected[b].labels()));
      EXPECT_EQ(found[b].sample_ids, expected[b].sample_ids);
    }
  }
}

TEST_P(BatchSourceGpuTest, AreTheSameWithAllImagesInTheMemoryOfTheGpu) {
  test::write_made_beton(folder_ / "r.beton",
                         {.samples = 23, .width = 20, .height = 31, .growth = 9});
  const BetonReader reader(folder_ / "r.beton");
  // Chunks that are smaller than an image give the same pixels as one chunk.
  const DeviceImages one(reader, 0, at::Device(at::kCUDA, 0));
  const DeviceImages many(reader, 0, at::Device(at::kCUDA, 0), {.chunk_bytes = 1000});
  EXPECT_TRUE(one.pixels().equal(many.pixels()));
  const at::Device gpu(at::kCUDA, 0);
  for (const std::int64_t size_px : {16, 25}) {
    const auto expected = batches(reader, gpu, GetParam(), size_px);
    const auto found = batches(reader, gpu, GetParam(), size_px, /*plan_images=*/true);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t b = 0; b < found.size(); ++b) {
      EXPECT_TRUE(found[b].images().is_contiguous(at::MemoryFormat::ChannelsLast));
      EXPECT_TRUE(found[b].images().equal(expected[b].images())) << "batch " << b;
      EXPECT_TRUE(found[b].labels().equal(expected[b].labels()));
    }
  }
}

TEST_P(BatchSourceGpuTest, APassWhoseImagesWereNotAllCopiedHasNoBatches) {
  test::write_made_beton(folder_ / "r.beton", {.samples = 23, .width = 20, .height = 31});
  const BetonReader reader(folder_ / "r.beton");
  std::atomic<bool> cancel = true;
  LoaderOptions options;
  options.plan_images = true;
  options.cancel_copy = &cancel;
  options.batch_size = 5;
  const auto source = make_batch_source(reader, standard_train_pipeline(), options, {},
                                        at::Device(at::kCUDA, 0), GetParam());
  source->begin_epoch({.image_size_px = 16});
  EXPECT_FALSE(source->next());
  cancel = false;
  source->begin_epoch({.image_size_px = 16});
  EXPECT_TRUE(source->next());
}

INSTANTIATE_TEST_SUITE_P(Types, BatchSourceGpuTest,
                         ::testing::Values(at::kFloat, at::kHalf, at::kBFloat16));

}  // namespace
}  // namespace precast::data
