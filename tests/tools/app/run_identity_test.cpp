#include "tools/app/run_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_matchers.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(RunIdentityTest, SwitchesThatEarlierVersionsRecordedAsNumbersAreTheSame) {
  const ordered_json there = {{"validation.lr_tta", 1}, {"dist.sync_bn", 0}};
  EXPECT_THAT(compare_identities(there, {{"validation.lr_tta", true}, {"dist.sync_bn", false}}),
              IsEmpty());
  EXPECT_THAT(compare_identities(there, {{"validation.lr_tta", false}, {"dist.sync_bn", false}}),
              ElementsAre(Names("validation.lr_tta", "1", "false")));
}

TEST(RunIdentityTest, ADifferenceIsNamedWithBothValues) {
  EXPECT_THAT(compare_identities({{"training.epochs", 16}}, {{"training.epochs", 18}}),
              ElementsAre(Names("training.epochs", 16, 18)));
  EXPECT_THAT(compare_identities({{"a", 1}}, {{"b", 1}}), ElementsAre(Names("b"), Names("a")));
}

TEST(RunIdentityTest, OnlyWhatAffectsLearningMustStayOnResume) {
  const ordered_json part = resumable_part({{"training.epochs", 16},
                                            {"data.num_workers", 4},
                                            {"logging.folder", "runs"},
                                            {"data.label_field", "label"},
                                            {"data.image_field", ""}});
  EXPECT_EQ(part, ordered_json({{"training.epochs", 16},
                                {"data.targets", ordered_json::array({"label"})},
                                {"data.inputs", ordered_json::array()}}));
}

}  // namespace
}  // namespace precast::tools
