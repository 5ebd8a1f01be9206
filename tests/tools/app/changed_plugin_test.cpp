// `precast eval RUN` and `precast predict RUN` after a plug-in of the run has changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/bytes.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/small_network.h"

namespace precast::tools {
namespace {

using test::Names;

class ChangedPluginTest : public ::testing::Test {
 protected:
  ChangedPluginTest() {
    test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1"));
    std::filesystem::copy(test::test_plugin_dir() + "/train_parts.so", plugin_);
  }
  static ChildResult precast(std::vector<std::string> args) {
    args.insert(args.begin(), test::bin_dir() + "/precast");
    return run_child(args, std::chrono::minutes(3));
  }
  /// Runs a command, which must succeed, and returns its warnings.
  [[nodiscard]] std::string warnings(const std::string& command,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {command, folder_ / "runs/r"};
    all.insert(all.end(), more.begin(), more.end());
    const ChildResult result = precast(all);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result.errors;
  }

  test::TemporaryFolder folder_;
  std::filesystem::path plugin_ = folder_ / "train_parts.so";
};

TEST_F(ChangedPluginTest, EvalAndPredictNameIt) {
  std::vector<std::string> train = {"train",
                                    "--plugins=[" + plugin_.string() + "]",
                                    "--data.train_dataset=" + (folder_ / "d.beton").string(),
                                    "--data.val_dataset=" + (folder_ / "d.beton").string(),
                                    "--training.batch_size=8",
                                    "--training.device=cpu"};
  for (const auto& options : {test::short_run(folder_ / "runs"), test::small_network()})
    train.insert(train.end(), options.begin(), options.end());
  const ChildResult trained = precast(train);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const auto told = Names("warning", plugin_.string(), (folder_ / "runs/r").string());
  EXPECT_THAT(warnings("eval"), testing::Not(told));
  // The dynamic loader ignores bytes after the end of a library.
  std::ofstream(plugin_, std::ios::app) << "changed";
  EXPECT_THAT(warnings("eval"), told);
  EXPECT_THAT(warnings("predict"), told);
  // The same plug-in from another folder.
  std::filesystem::create_directory(folder_ / "moved");
  const std::filesystem::path moved = folder_ / "moved/train_parts.so";
  std::filesystem::copy(plugin_, moved);
  EXPECT_THAT(warnings("eval", {"--plugins=[" + moved.string() + "]"}),
              Names("warning", moved.string()));
}

}  // namespace
}  // namespace precast::tools
