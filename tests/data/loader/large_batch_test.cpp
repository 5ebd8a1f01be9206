// Batches that are larger than the dataset.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/loader/batch_hash.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

class LargeBatch : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSamples = 21;
  static constexpr std::int64_t kSizePx = 16;
  /// Batches of this size would need 12 GiB each.
  static constexpr std::int64_t kLargest = std::int64_t{1} << 24;

  LargeBatch() {
    test::write_made_beton(folder_ / "x.beton", {.samples = kSamples});
    reader_.emplace(folder_ / "x.beton");
  }
  static LoaderOptions options(std::int64_t batch_size) {
    LoaderOptions made;
    made.batch_size = batch_size;
    made.workers = 2;
    made.seed = 3;
    return made;
  }

  test::TemporaryFolder folder_;
  std::optional<BetonReader> reader_;
};

TEST_F(LargeBatch, NeedsMemoryOnlyForTheSamplesThatExist) {
  const auto batches = [&](std::int64_t batch_size, int world = 1) {
    return plan_memory(*reader_, standard_train_pipeline(), options(batch_size), kSizePx, world)
        .batches;
  };
  EXPECT_EQ(batches(kLargest), batches(kSamples));
  EXPECT_EQ(batches(kLargest, 2), batches(kSamples / 2 + 1));
  EXPECT_LT(batches(kSamples - 1), batches(kSamples));
}

TEST_F(LargeBatch, HoldsTheWholePass) {
  const auto hashes = [&](std::int64_t batch_size, const EpochRequest& request) {
    Loader loader(*reader_, standard_train_pipeline(), options(batch_size));
    return test::hashes_of_pass(loader, request);
  };
  const EpochRequest whole{.epoch = 1, .image_size_px = kSizePx};
  EXPECT_EQ(hashes(kLargest, whole).size(), 1U);
  EXPECT_EQ(hashes(kLargest, whole), hashes(kSamples, whole));
  const EpochRequest second{.epoch = 1, .image_size_px = kSizePx, .rank = 1, .world = 2};
  EXPECT_EQ(hashes(kLargest, second), hashes(kSamples / 2, second));
}

}  // namespace
}  // namespace precast::data
