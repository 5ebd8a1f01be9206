#include "tools/experiments/reproduce/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ThrowsMessage;

TEST(JobFileTest, ResultsOfAnotherBuildOfAPluginAreNotMixedIn) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "r.yaml") << "plugins: [p.so]\n";
  std::ofstream(folder / "p.so") << "first";
  const Trial trial{
      .id = "a-seed0", .recipe = folder / "r.yaml", .settings = {{"lr.lr", "1"}}, .folder = {}};
  JobFile job(folder.path());
  job.snapshot({trial});
  job.record_start(trial);
  std::ofstream(folder / "p.so") << "second";
  const auto refused = ThrowsMessage<ConfigError>(Names(folder.path(), "a-seed0", "p.so"));
  EXPECT_THAT([&] { job.record_start(trial); }, refused);
  EXPECT_THAT([&] { JobFile(folder.path()).check(trial); }, refused);
  std::ofstream(folder / "p.so") << "first";
  EXPECT_NO_THROW(JobFile(folder.path()).check(trial));
  const auto settings = JobFile(folder.path()).settings_of("a-seed0");
  ASSERT_TRUE(settings.has_value());
  ASSERT_EQ(settings->size(), 1U);
  EXPECT_EQ(settings->front().key, "lr.lr");
}

}  // namespace
}  // namespace precast::tools
