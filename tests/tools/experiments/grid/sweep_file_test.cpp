#include "tools/experiments/grid/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/experiments/trial/small_dataset.h"

namespace precast::tools {
namespace {

using test::Names;
using test::write_small_dataset;
using testing::ThrowsMessage;

class SweepFileTest : public ::testing::Test {
 protected:
  SweepFileTest() {
    std::ofstream(folder_ / "r.yaml") << "plugins: [p.so]\n";
    build("first");
    create_folders(folder_ / "g");
  }
  void build(const std::string& content) const { std::ofstream(folder_ / "p.so") << content; }
  Sweep sweep() const {
    std::ofstream(folder_ / "s.yaml")
        << "recipe: " << (folder_ / "r.yaml").string() << "\nfolder: " << (folder_ / "g").string()
        << "\naxes: {lr.lr: [1, 2]}\n";
    return read_sweep(folder_ / "s.yaml");
  }

  test::TemporaryFolder folder_;
};

TEST_F(SweepFileTest, AnotherBuildOfAPluginIsAnotherGrid) {
  const Sweep sweep = this->sweep();
  SweepFile file(sweep);
  file.ensure_written();
  EXPECT_NO_THROW(static_cast<void>(SweepFile(sweep)));
  build("second");
  const auto refused =
      ThrowsMessage<ConfigError>(Names(folder_ / "s.yaml", folder_ / "g", "p.so", "folder"));
  EXPECT_THAT([&] { file.check(); }, refused) << "the plug-in changed while trials run";
  EXPECT_THAT([&] { static_cast<void>(SweepFile(sweep)); }, refused);
  build("first");
  EXPECT_NO_THROW(static_cast<void>(SweepFile(sweep)));
}

TEST_F(SweepFileTest, AFolderOfAnEarlierVersionThatRecordsNoPluginIsContinued) {
  const Sweep sweep = this->sweep();
  SweepFile(sweep).ensure_written();
  std::ifstream written(folder_ / "g/sweep.json");
  auto facts = nlohmann::json::parse(written);
  ASSERT_EQ(facts.erase("plugin_hashes"), 1U);
  std::ofstream(folder_ / "g/sweep.json") << facts;
  build("second");
  SweepFile(sweep).ensure_written();
  build("third");
  EXPECT_THROW(static_cast<void>(SweepFile(sweep)), ConfigError);
}

TEST_F(SweepFileTest, ADatasetWithCorrectedLabelsIsAnotherDataset) {
  const std::filesystem::path train = folder_ / "train.beton", val = folder_ / "val.beton";
  std::ofstream(folder_ / "r.yaml")
      << "data: {train_dataset: " << train.string() << ", val_dataset: " << val.string() << "}\n";
  write_small_dataset(train, 1);
  write_small_dataset(val, 1, "abc");
  const auto size = std::filesystem::file_size(val);
  const Sweep sweep = this->sweep();
  SweepFile file(sweep);
  file.ensure_written();
  EXPECT_NO_THROW(file.check());
  const auto refused = ThrowsMessage<ConfigError>(Names(folder_ / "g", val, size, "content"));
  write_small_dataset(val, 2, "abc");
  ASSERT_EQ(std::filesystem::file_size(val), size);
  EXPECT_THAT([&] { file.check(); }, refused) << "while trials run";
  EXPECT_THAT([&] { static_cast<void>(SweepFile(sweep)); }, refused);
  write_small_dataset(val, 1, "abd");
  EXPECT_THAT([&] { file.check(); }, refused) << "the fingerprint is the same";
  write_small_dataset(val, 1, "abc");
  EXPECT_NO_THROW(static_cast<void>(SweepFile(sweep)));
}

TEST_F(SweepFileTest, AFolderOfAnEarlierVersionThatRecordsNoContentIsContinued) {
  const std::filesystem::path val = folder_ / "val.beton";
  std::ofstream(folder_ / "r.yaml") << "data: {val_dataset: " << val.string() << "}\n";
  write_small_dataset(val, 1);
  const Sweep sweep = this->sweep();
  SweepFile(sweep).ensure_written();
  std::ifstream written(folder_ / "g/sweep.json");
  auto facts = nlohmann::json::parse(written);
  for (const char* key : {"dataset_fingerprints", "dataset_checksums"})
    ASSERT_EQ(facts.erase(key), 1U) << key;
  std::ofstream(folder_ / "g/sweep.json") << facts;
  write_small_dataset(val, 2);
  SweepFile(sweep).ensure_written();
  write_small_dataset(val, 3);
  EXPECT_THROW(static_cast<void>(SweepFile(sweep)), ConfigError);
}

}  // namespace
}  // namespace precast::tools
