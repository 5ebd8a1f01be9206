#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/beton/reader.h"
#include "framework/core/file.h"
#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/range_server.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"
#include "tests/tools/small_network.h"

namespace precast::tools {
namespace {

using test::Names;
using test::PrecastProgram;
using ::testing::Contains;

class TrainOverHttpTest : public ::testing::Test {
 protected:
  TrainOverHttpTest() {
    test::write_bytes(folder_ / "d.beton", test::golden_beton("img_prop_nette_w1"));
    server_.emplace(folder_ / "d.beton");
  }

  [[nodiscard]] std::string file() const { return folder_ / "d.beton"; }
  /// The options that `train` and `serve` must have in common.
  [[nodiscard]] std::vector<std::string> recipe() const {
    std::vector<std::string> all = {"--data.cache_dir=" + (folder_ / "cache").string(),
                                    "--training.batch_size=8",
                                    "--resolution.min_res=32",
                                    "--resolution.max_res=32",
                                    "--validation.resolution=32",
                                    "--training.epochs=1",
                                    "--lr.lr=0.01",
                                    "--training.device=cpu"};
    for (const std::string& option : test::small_network()) all.push_back(option);
    return all;
  }
  [[nodiscard]] std::vector<std::string> train_command(const std::string& run,
                                                       const std::string& train_dataset,
                                                       const std::string& val_dataset) const {
    std::vector<std::string> all = {
        "train", "--data.train_dataset=" + train_dataset, "--data.val_dataset=" + val_dataset,
        "--logging.folder=" + (folder_ / "runs").string(), "--logging.run_id=" + run};
    for (const std::string& option : recipe()) all.push_back(option);
    return all;
  }
  [[nodiscard]] ChildResult train(const std::string& run, const std::string& dataset,
                                  const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = train_command(run, dataset, dataset);
    all.insert(all.begin(), test::bin_dir() + "/precast");
    all.insert(all.end(), more.begin(), more.end());
    return run_child(all, std::chrono::minutes(3));
  }
  /// Makes the server withhold all images except the first one of the file.
  void stall() {
    const data::BetonReader reader(file());
    const std::uint64_t last = reader.size() - 1;
    server_->set_faults(fmt::format(R"({{"delay_s": 600, "delay_bytes": [{}, {}]}})",
                                    reader.blob_offset(1, 0),
                                    reader.blob_offset(last, 0) + reader.blob_bytes(last, 0) - 1));
  }
  /// Sends SIGTERM while the server does not respond. @return the exit code.
  [[nodiscard]] static int stop(PrecastProgram& program) {
    ::kill(program.id(), SIGTERM);
    if (!test::eventually([&] { return !program.running(); })) ::kill(program.id(), SIGKILL);
    return program.wait();
  }
  [[nodiscard]] std::vector<std::string> checkpoints(const std::string& run) const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_ / ("runs/" + run + "/checkpoints")))
      names.push_back(entry.path().filename());
    return names;
  }
  /// Trains until the run requests images that the server withholds, stops the run, and resumes it.
  void expect_stop_and_resume(const std::string& train_dataset, const std::string& val_dataset,
                              const std::string& checkpoint) {
    const ChildResult whole = train("whole", file());
    ASSERT_EQ(whole.exit_code, 0) << whole.errors;
    stall();
    std::vector<std::string> command = train_command("stopped", train_dataset, val_dataset);
    PrecastProgram stalled(command);
    EXPECT_TRUE(server_->wait_until_delayed());
    EXPECT_EQ(stop(stalled), 85) << stalled.err;
    EXPECT_THAT(checkpoints("stopped"), Contains(checkpoint));
    server_->set_faults("{}");
    command.emplace_back("--checkpoint.resume=auto");
    PrecastProgram resumed(command);
    EXPECT_EQ(resumed.wait(), 0) << resumed.err;
    EXPECT_EQ(weights("stopped"), weights("whole"));
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

TEST_F(TrainOverHttpTest, AWaitForAServerMayBeAsLongAsTheWatchdogAllows) {
  const auto dry_run = [this](const std::string& train_dataset, const std::string& val_dataset,
                              const std::vector<std::string>& more) {
    std::vector<std::string> all = train_command("x", train_dataset, val_dataset);
    all.insert(all.end(), more.begin(), more.end());
    all.emplace_back("--dry-run");
    return test::precast_run(all);
  };
  const std::string url = server_->url();
  for (const std::string key : {"--data.http_retry_s=1800", "--training.stall_timeout_s=300"}) {
    for (const auto& [train_dataset, val_dataset] : {std::pair(url, file()), {file(), url}}) {
      const test::PrecastRun run = dry_run(train_dataset, val_dataset, {key});
      EXPECT_EQ(run.code, 2) << run.err;
      EXPECT_THAT(run.err, Names("data.http_retry_s", "training.stall_timeout_s"));
    }
    EXPECT_EQ(dry_run(file(), file(), {key}).code, 0) << "there is no server";
  }
  const test::PrecastRun longer =
      dry_run(url, url, {"--data.http_retry_s=3600", "--training.stall_timeout_s=3601"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  const test::PrecastRun evaluates =
      dry_run(url, url, {"--data.http_retry_s=3600", "--training.eval_only=1"});
  EXPECT_EQ(evaluates.code, 2) << evaluates.out;
  EXPECT_THAT(evaluates.err, Names("model.weights"));
  EXPECT_THAT(evaluates.err, testing::Not(Names("data.http_retry_s")));
}

TEST_F(TrainOverHttpTest, ARunThatWaitsForTheServerStopsAtASignalWithACheckpoint) {
  expect_stop_and_resume(server_->url(), file(), "ckpt-0000000000");
}

TEST_F(TrainOverHttpTest, AnEvaluationThatWaitsForTheServerStopsAtASignalWithACheckpoint) {
  expect_stop_and_resume(file(), server_->url(), "ckpt-0000000003");
}

TEST_F(TrainOverHttpTest, AServedRingThatWaitsForTheServerStopsAtASignalAndSoDoesItsRun) {
  stall();
  const std::string ring = "over-http-" + std::to_string(::getpid());
  std::vector<std::string> command = {"serve", server_->url(), "--as", ring};
  for (const std::string& option : recipe()) command.push_back(option);
  PrecastProgram serve(command);
  EXPECT_TRUE(serve.printed("ring://" + ring));
  PrecastProgram run(train_command("ring", "ring://" + ring, file()));
  EXPECT_TRUE(server_->wait_until_delayed());
  EXPECT_EQ(stop(serve), 128 + SIGTERM) << serve.err;
  EXPECT_EQ(stop(run), 85) << run.err;
  EXPECT_THAT(checkpoints("ring"), Contains("ckpt-0000000000"));
}

}  // namespace
}  // namespace precast::tools
