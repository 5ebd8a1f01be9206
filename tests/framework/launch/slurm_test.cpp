#include "framework/launch/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace precast {
namespace {

using testing::ElementsAre;
using testing::Optional;

TEST(ExpandHostsTest, KeepsPlainNames) {
  EXPECT_THAT(expand_hosts("login1"), Optional(ElementsAre("login1")));
  EXPECT_THAT(expand_hosts("a,b-2,c"), Optional(ElementsAre("a", "b-2", "c")));
}

TEST(ExpandHostsTest, ExpandsRangesWithTheirLeadingZeros) {
  EXPECT_THAT(expand_hosts("node[01-03,07]"),
              Optional(ElementsAre("node01", "node02", "node03", "node07")));
  EXPECT_THAT(expand_hosts("n[9-11]"), Optional(ElementsAre("n9", "n10", "n11")));
  EXPECT_THAT(expand_hosts("n[098-101]-ib,x"),
              Optional(ElementsAre("n098-ib", "n099-ib", "n100-ib", "n101-ib", "x")));
}

TEST(ExpandHostsTest, TurnsTheLastBracketFastest) {
  EXPECT_THAT(expand_hosts("r[0-1]n[1,3]"), Optional(ElementsAre("r0n1", "r0n3", "r1n1", "r1n3")));
}

TEST(ExpandHostsTest, RefusesWhatIsNoList) {
  for (const char* text : {"", "node[01-03", "node[]", "node[3-1]", "node[a-b]", "node[1-]", ",a",
                           "node[0-999999999]", "n[0-9999]n[0-9999]"}) {
    EXPECT_EQ(expand_hosts(text), std::nullopt) << text;
  }
}

TEST(TasksOnNodeTest, CountsRepeatedEntries) {
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("2(x3),1", 0), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
}

TEST(TasksOnNodeTest, RefusesWhatIsNoListOrHasNoSuchNode) {
  EXPECT_EQ(tasks_on_node("2(x3),1", 4), std::nullopt);
  for (const char* text : {"", "x", "2(x", "2(x3", "2(xa)", "-1"}) {
    EXPECT_EQ(tasks_on_node(text, 0), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace precast
