#include "framework/core/suggest.h"

#include <gtest/gtest.h>

namespace precast {
namespace {

TEST(Suggest, FindsTheNearestName) {
  EXPECT_EQ(suggest("resnet19", {"resnet18", "resnet50"}), "Did you mean 'resnet18'?");
  EXPECT_EQ(suggest("RESNET50", {"resnet18", "resnet50"}), "Did you mean 'resnet50'?");
  EXPECT_EQ(suggest("batchsize", {"epochs", "batch_size"}), "Did you mean 'batch_size'?");
}

TEST(Suggest, CountsASwapAsOneEdit) {
  EXPECT_EQ(suggest("sdg", {"sgd"}), "Did you mean 'sgd'?");
  EXPECT_EQ(suggest("dgs", {"sgd"}), "Known: sgd.");
}

TEST(Suggest, ListsTheNamesWhenNoneIsNear) {
  EXPECT_EQ(suggest("mobilenet", {"resnet18", "vit"}), "Known: resnet18, vit.");
  EXPECT_EQ(suggest("", {"resnet18"}), "Known: resnet18.");
  EXPECT_EQ(suggest("x", {}), "There are none.");
}

}  // namespace
}  // namespace precast
