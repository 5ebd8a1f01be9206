#include "framework/core/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Matches a message that contains `name`, but not `other`.
auto names_only(const std::string& name, const std::string& other) {
  return AllOf(Names(name), Not(HasSubstr(other)));
}

TEST(Suggest, FindsTheNearestName) {
  EXPECT_THAT(suggest("resnet19", {"resnet18", "resnet50"}), names_only("'resnet18'", "resnet50"));
  EXPECT_THAT(suggest("RESNET50", {"resnet18", "resnet50"}), names_only("'resnet50'", "resnet18"));
  EXPECT_THAT(suggest("batchsize", {"epochs", "batch_size"}), names_only("'batch_size'", "epochs"));
}

TEST(Suggest, CountsASwapAsOneEdit) {
  EXPECT_THAT(suggest("sdg", {"sgd", "vit"}), names_only("'sgd'", "vit"));
  EXPECT_THAT(suggest("dgs", {"sgd", "vit"}), Names("sgd, vit"));
}

TEST(Suggest, ListsTheNamesWhenNoneIsNear) {
  EXPECT_THAT(suggest("mobilenet", {"resnet18", "vit"}), Names("resnet18, vit"));
  EXPECT_THAT(suggest("", {"resnet18"}), names_only("resnet18", "'"));
  EXPECT_FALSE(suggest("x", {}).empty());
}

TEST(Suggest, ForAMessageThatListsTheNamesThereIsOnlyTheNearestOne) {
  EXPECT_THAT(suggest_similar("sdg", {"sgd", "vit"}), names_only("'sgd'", "vit"));
  EXPECT_EQ(suggest_similar("mobilenet", {"resnet18", "vit"}), "");
  EXPECT_EQ(suggest_similar("x", {}), "");
}

}  // namespace
}  // namespace precast
