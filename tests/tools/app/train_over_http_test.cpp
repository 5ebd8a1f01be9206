#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/file.h"
#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/range_server.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/small_network.h"

namespace precast::tools {
namespace {

using test::Names;

class TrainOverHttpTest : public ::testing::Test {
 protected:
  TrainOverHttpTest() {
    test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1"));
    server_.emplace(folder_ / "d.beton");
  }

  [[nodiscard]] ChildResult train(const std::string& run, const std::string& dataset,
                                  std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {test::bin_dir() + "/precast",
                                    "train",
                                    "--data.train_dataset=" + dataset,
                                    "--data.val_dataset=" + dataset,
                                    "--data.cache_dir=" + (folder_ / "cache").string(),
                                    "--training.batch_size=8",
                                    "--resolution.min_res=32",
                                    "--resolution.max_res=32",
                                    "--validation.resolution=32",
                                    "--training.epochs=1",
                                    "--lr.lr=0.01",
                                    "--logging.folder=" + (folder_ / "runs").string(),
                                    "--logging.run_id=" + run,
                                    "--training.device=cpu"};
    for (const std::string& option : test::small_network()) all.push_back(option);
    all.insert(all.end(), more.begin(), more.end());
    return run_child(all, std::chrono::minutes(3));
  }
  [[nodiscard]] std::vector<std::byte> weights(const std::string& run) const {
    return read_file(folder_ / ("runs/" + run + "/final_weights.safetensors"));
  }

  test::TemporaryFolder folder_;
  std::optional<test::RangeServer> server_;
};

TEST_F(TrainOverHttpTest, WeightsAreThoseOfTheLocalFile) {
  const ChildResult local = train("local", folder_ / "d.beton");
  ASSERT_EQ(local.exit_code, 0) << local.errors;
  const ChildResult remote = train("remote", server_->url());
  ASSERT_EQ(remote.exit_code, 0) << remote.errors;
  EXPECT_EQ(weights("remote"), weights("local"));
  EXPECT_LE(server_->bytes_sent(), std::filesystem::file_size(folder_ / "d.beton") * 105 / 100);
}

TEST_F(TrainOverHttpTest, AServerThatIsGoneIsAnIoErrorInTime) {
  const std::string url = server_->url();
  server_->kill();
  const ChildResult run = train("gone", url, {"--data.http_retry_s=1"});
  EXPECT_EQ(run.exit_code, 5) << run.errors;
  EXPECT_THAT(run.errors, Names(url, "bytes 0-0"));
  const ChildResult zero = train("zero", url, {"--data.in_memory=0"});
  EXPECT_EQ(zero.exit_code, 2) << zero.errors;
  EXPECT_THAT(zero.errors, Names(url, "data.in_memory"));
}

}  // namespace
}  // namespace precast::tools
