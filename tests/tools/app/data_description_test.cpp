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

}  // namespace
}  // namespace precast::tools
