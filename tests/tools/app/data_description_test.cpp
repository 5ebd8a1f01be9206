#include "tools/app/data_description.h"

#include <gtest/gtest.h>

#include "tests/data/beton/golden_beton.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

TEST(DataDescriptionTest, AFileHasJpegsIfAnyOfItsImagesIsOne) {
  const test::TemporaryFolder folder;
  const auto jpegs_in = [&](const char* name) {
    return has_jpegs(data::BetonReader(test::put_golden_beton(folder.path(), name)));
  };
  EXPECT_TRUE(jpegs_in("img_jpg_w3"));
  EXPECT_TRUE(jpegs_in("img_prop_nette_w1")) << "14 of 24 images";
  EXPECT_FALSE(jpegs_in("img_raw_w1"));
  EXPECT_FALSE(jpegs_in("scalars_only"));
}

TEST(DataDescriptionTest, APipelineHasAMeanOnlyIfItsImagesAreNormalised) {
  data::ImagePipeline images = data::standard_train_pipeline();
  const auto summary = [&] { return pipeline_summary(images, nullptr, /*train=*/true); };
  EXPECT_EQ(summary().at("mean"), images.normalize.mean);
  images.type = data::ElementType::f32;
  EXPECT_FALSE(summary().contains("mean"));
  EXPECT_FALSE(summary().contains("std"));
  images.normalized = true;
  EXPECT_EQ(summary().at("std"), images.normalize.std);
}

}  // namespace
}  // namespace precast::tools
