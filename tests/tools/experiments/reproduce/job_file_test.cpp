#include "tools/experiments/reproduce/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/experiments/trial/small_dataset.h"

namespace precast::tools {
namespace {

using test::Names;
using test::write_small_dataset;
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

TEST(JobFileTest, ADatasetWithCorrectedLabelsIsAnotherDataset) {
  const test::TemporaryFolder folder;
  const std::filesystem::path train = folder / "d.beton";
  std::ofstream(folder / "r.yaml") << "data: {train_dataset: " << train.string() << "}\n";
  write_small_dataset(train, 1, "abc");
  const auto size = std::filesystem::file_size(train);
  const Trial trial{.id = "a-seed0", .recipe = folder / "r.yaml", .settings = {}, .folder = {}};
  JobFile job(folder.path());
  job.snapshot({trial});
  job.record_start(trial);
  EXPECT_EQ(JobFile(folder.path()).settings_of("a-seed0")->size(), 0U);
  write_small_dataset(train, 2, "abc");
  ASSERT_EQ(std::filesystem::file_size(train), size);
  EXPECT_THAT([&] { job.record_start(trial); },
              ThrowsMessage<ConfigError>(Names("data.train_dataset", "a-seed0", "--folder")));
  EXPECT_THROW(JobFile(folder.path()).check(trial), ConfigError);
  write_small_dataset(train, 1, "abd");
  EXPECT_THROW(JobFile(folder.path()).check(trial), ConfigError) << "the fingerprint is the same";
  write_small_dataset(train, 1, "abc");
  EXPECT_NO_THROW(JobFile(folder.path()).check(trial));

  // A file of an earlier version, which recorded no content.
  std::ifstream written(folder / "reproduce.json");
  auto begun = nlohmann::json::parse(written);
  for (const char* fact : {"dataset_fingerprints", "dataset_checksums"})
    ASSERT_EQ(begun.at("a-seed0").erase(fact), 1U) << fact;
  std::ofstream(folder / "reproduce.json") << begun;
  write_small_dataset(train, 2, "abc");
  EXPECT_NO_THROW(JobFile(folder.path()).check(trial));
}

}  // namespace
}  // namespace precast::tools
