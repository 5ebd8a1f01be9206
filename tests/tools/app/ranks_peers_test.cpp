// Starts the same two ranks with other launchers: torchrun, mpirun, Slurm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/paths.h"
#include "tests/tools/app/two_ranks.h"

namespace precast::tools {
namespace {

using test::Program;
using test::TwoRanks;

/// The path of a program in PATH; empty if it is not there.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (std::filesystem::exists(std::filesystem::path(folder) / name)) return folder + "/" + name;
  }
  return {};
}

class RanksPeersTest : public ::testing::Test {
 protected:
  void run(const std::vector<std::string>& command) {
    Program program(command, environment_);
    ASSERT_EQ(program.wait(), 0) << program.out << program.err;
  }
  /// Expects that runs `a` and `b` have the same log and weights.
  void expect_same(const std::string& a, const std::string& b) const {
    EXPECT_EQ(ranks_.rows(a), ranks_.rows(b));
    ASSERT_FALSE(ranks_.weights(a).empty());
    EXPECT_TRUE(ranks_.weights(a) == ranks_.weights(b)) << "the weights differ";
  }
  /// Expects the same result from ranks that `starter` starts and from ranks that precast's
  /// launcher starts.
  void expect_same_as_launcher(const std::vector<std::string>& starter,
                               const std::vector<std::string>& more = {}) {
    run(ranks_.command("launcher", {"--dist.nproc=2"}));
    run(ranks_.started_by(starter, "peer", more));
    EXPECT_EQ(ranks_.rows("launcher").size(), 2 * 3 + 2U);
    expect_same("launcher", "peer");
  }

  TwoRanks ranks_;
  std::vector<std::string> environment_ = TwoRanks::kEnvironment;
};

TEST_F(RanksPeersTest, TorchrunTrainsLikeTheLauncher) {
  const std::string python = test::source_dir() + "/.venv/bin/python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no " << python << ": run tools/setup";
  expect_same_as_launcher({python, "-m", "torch.distributed.run", "--standalone", "--no-python",
                           "--nproc-per-node", "2"});
}

/// Imitates two hosts, each with a torchrun agent. torchrun counts a restart only on the agent
/// whose rank has failed, and its store survives the restart.
TEST_F(RanksPeersTest, TorchrunRestartsAfterARankIsKilled) {
  const std::string python = test::source_dir() + "/.venv/bin/python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no " << python << ": run tools/setup";
  const std::string endpoint = "127.0.0.1:" + std::to_string(TwoRanks::free_port());
  const std::vector<std::string> keys = {"--checkpoint.resume=auto", "--checkpoint.every_steps=1",
                                         "--dist.join_timeout_s=60"};
  run(ranks_.command("uncut", {"--dist.nproc=2", "--checkpoint.every_steps=1"}));
  const auto agent = [&](const std::string& failpoint) {
    // Only the first start of a rank gets the failpoint.
    const std::string start =
        "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && export PRECAST_FAILPOINTS=" + failpoint +
        "; exec \"$@\"";
    return std::make_unique<Program>(
        ranks_.started_by(
            {python, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1",
             "--rdzv-backend=c10d", "--rdzv-endpoint=" + endpoint, "--rdzv-id=precast",
             "--local-addr=127.0.0.1", "--max-restarts=1", "--no-python", "sh", "-c", start, "sh"},
            "cut", keys),
        environment_);
  };
  const auto stays = agent("");
  const auto fails = agent("trainer.before_step=kill@3");
  EXPECT_EQ(fails->wait(), 0) << fails->err;
  EXPECT_EQ(stays->wait(), 0) << stays->err;
  EXPECT_EQ(test::occurrences(stays->err + fails->err, "2 ranks on"), 2) << "one restart";
  expect_same("uncut", "cut");
}

TEST_F(RanksPeersTest, MpirunTrainsLikeTheLauncher) {
  const std::string mpirun = find_program("mpirun.openmpi");
  if (mpirun.empty()) GTEST_SKIP() << "no mpirun.openmpi: apt-get install openmpi-bin";
  expect_same_as_launcher({mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "2"},
                          {"--dist.port=" + std::to_string(TwoRanks::free_port())});
}

/// The options of srun in the batch script of framework/launch/README.md.
std::vector<std::string> srun_options() {
  std::ifstream file(test::source_dir() + "/framework/launch/README.md");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<std::string> options{std::istream_iterator<std::string>(words), {}};
    if (options.empty() || options[0] != "srun") continue;
    options.erase(std::ranges::find(options, "precast"), options.end());
    options.erase(options.begin());
    return options;
  }
  return {};
}

/// Uses a Slurm cluster with one node, which the test starts itself.
class SlurmTest : public RanksPeersTest {
 protected:
  void SetUp() override {
    Program start({node_, "start", slurm_.path()});
    const int code = start.wait();
    if (code == 77) GTEST_SKIP() << start.err;
    ASSERT_EQ(code, 0) << start.err;
    environment_.push_back("SLURM_CONF=" + (slurm_ / "slurm.conf").string());
    srun_ = {find_program("srun"), "--ntasks=2", "--job-name=precast"};
    const std::vector<std::string> options = srun_options();
    ASSERT_FALSE(options.empty());
    srun_.insert(srun_.end(), options.begin(), options.end());
  }
  void TearDown() override { Program({node_, "stop", slurm_.path()}).wait(); }

  /// Waits until a run has logged `count` rows. @return false if that took over 60 s.
  bool logged(const std::string& run, std::size_t count) const {
    for (int i = 0; i < 1200; ++i) {
      std::ifstream file(ranks_.folder(run) / "log");
      if (std::count(std::istreambuf_iterator<char>(file), {}, '\n') >=
          static_cast<std::ptrdiff_t>(count))
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  /// Expects that `signal` ends a long run with exit code 85 and that the run then continues where
  /// it stopped.
  void expect_resumed_after(const std::string& signal) {
    const std::vector<std::string> keys = {"--training.epochs=12", "--checkpoint.resume=auto"};
    run(ranks_.started_by(srun_, "uncut", keys));
    Program first(ranks_.started_by(srun_, "cut", keys), environment_);
    ASSERT_TRUE(logged("cut", 2));
    run({find_program("scancel"), "--name=precast", "--signal=" + signal});
    EXPECT_EQ(first.wait(), 85) << first.err;
    EXPECT_FALSE(std::filesystem::is_empty(ranks_.folder("cut") / "checkpoints"));
    EXPECT_TRUE(ranks_.weights("cut").empty()) << "finished before the signal";
    Program second(ranks_.started_by(srun_, "cut", keys), environment_);
    ASSERT_EQ(second.wait(), 0) << second.err;
    EXPECT_THAT(second.err, testing::ContainsRegex("step [1-9]"))
        << "must not start again at the first step";
    ASSERT_FALSE(ranks_.weights("cut").empty());
    EXPECT_TRUE(ranks_.weights("cut") == ranks_.weights("uncut")) << "the weights differ";
  }

  const std::string node_ = test::source_dir() + "/tests/support/slurm_node";
  test::TemporaryFolder slurm_;
  std::vector<std::string> srun_;
};

TEST_F(SlurmTest, SrunTrainsLikeTheLauncher) {
  expect_same_as_launcher(srun_);
}

TEST_F(SlurmTest, RankZeroMayStopAfterTheOthers) {
  std::vector<std::string> command = srun_;
  for (const char* word : {"sh", "-c", "[ $SLURM_PROCID -ne 0 ] || sleep 4; exit 85"})
    command.emplace_back(word);
  Program ranks(command, environment_);
  EXPECT_EQ(ranks.wait(), 85) << ranks.err;
}

TEST_F(SlurmTest, APreemptedRunResumesExactly) {
  expect_resumed_after("USR1");
}

TEST_F(SlurmTest, ATerminatedRunResumesExactly) {
  expect_resumed_after("TERM");
}

}  // namespace
}  // namespace precast::tools
