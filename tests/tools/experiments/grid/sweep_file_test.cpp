#include "tools/experiments/grid/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;
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

}  // namespace
}  // namespace precast::tools
