#include "tools/experiments/trial/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>

#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tools/experiments/trial/interval.h"
#include "tools/experiments/trial/journal.h"
#include "tools/experiments/trial/run_log.h"
#include "tools/experiments/trial/slot.h"
#include "tools/plugins/plugin_file.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ElementsAre;

TEST(TrialTest, IdIsReadableSafeAndStable) {
  const std::vector<Setting> settings = {{"lr.lr", "0.1"}, {"pipeline.train", "[a, b/c]"}};
  const std::string id = trial_id(settings);
  EXPECT_THAT(id, testing::MatchesRegex("lr0\\.1_train_a__b_c_-[0-9a-f]{16}"));
  EXPECT_EQ(id, trial_id(settings));
  // The id depends on the values, but not on the order of the keys.
  EXPECT_EQ(id, trial_id({settings[1], settings[0]}));
  EXPECT_NE(id, trial_id({{"lr.lr", "0.10"}, {"pipeline.train", "[a, b/c]"}}));
}

TEST(TrialTest, LongSettingsStillDiffer) {
  const std::string most(300, 'x');
  EXPECT_NE(trial_id({{"model.params", most + "1"}}), trial_id({{"model.params", most + "2"}}));
  EXPECT_LT(trial_id({{"model.params", most}}).size(), 80U);
}

TEST(TrialTest, ArgumentsNameTheFolderAndResume) {
  const Trial trial{"a", "r.yaml", {{"lr.lr", "0.1"}}, "f"};
  EXPECT_THAT(trial.train_arguments(),
              ElementsAre("train", "r.yaml", "--lr.lr=0.1", "--logging.folder=f",
                          "--logging.run_id=a", "--checkpoint.resume=auto", "--warn-unread"));
  EXPECT_EQ(trial.run_folder(), "f/a");
}

TEST(TrialTest, EveryExitCodeHasAMeaning) {
  const std::map<int, TrialOutcome> codes = {
      {0, TrialOutcome::done},      {1, TrialOutcome::failed},     {2, TrialOutcome::fatal},
      {3, TrialOutcome::failed},    {4, TrialOutcome::failed},     {5, TrialOutcome::retry},
      {6, TrialOutcome::retry},     {10, TrialOutcome::retry},     {11, TrialOutcome::retry},
      {12, TrialOutcome::diverged}, {13, TrialOutcome::retry},     {14, TrialOutcome::retry},
      {77, TrialOutcome::failed},   {85, TrialOutcome::preempted}, {126, TrialOutcome::fatal},
      {127, TrialOutcome::fatal}};
  for (const auto& [code, outcome] : codes) EXPECT_EQ(classify_exit(code, 0), outcome) << code;
  EXPECT_EQ(classify_exit(137, 9), TrialOutcome::retry);
  EXPECT_EQ(classify_exit(139, 0), TrialOutcome::retry) << "139: a rank was killed by SIGSEGV";
}

TEST(TrialTest, TheExitTextDependsOnTheExitCode) {
  EXPECT_EQ(exit_text(5), "exit code 5");
  EXPECT_THAT(exit_text(128 + SIGKILL), Names("SIGKILL"));
  EXPECT_EQ(exit_text(255), "exit code 255");
  EXPECT_THAT(exit_text(0), Names("summary.json"));
}

TEST(TrialTest, KeysThatSayHowDataIsReadAndARunWaitsChangeNoResult) {
  for (const char* key :
       {"data.in_memory", "data.direct_io", "data.batches_ahead", "data.jpeg_index_mb",
        "data.cache_mb", "data.val_dataset", "logging.every", "dist.timeout_s"})
    EXPECT_FALSE(changes_results({key, "1"})) << key;
  for (const char* key : {"data.order", "data.verify", "logging.log_level", "training.device"})
    EXPECT_TRUE(changes_results({key, "1"})) << key;
}

TEST(TrialTest, FiguresAreShortAndHaveNoExponent) {
  EXPECT_EQ(format_figure(0.71234, "top_1"), "0.7123");
  EXPECT_EQ(format_figure(0.000012345, "val_loss"), "1.234e-05");
  EXPECT_EQ(format_figure(999.96, "images_per_second"), "1000");
  EXPECT_EQ(format_figure(12345.6, "images_per_second"), "12346");
  EXPECT_EQ(format_figure(123456, "images_per_second"), "123456");
  EXPECT_EQ(format_figure(-2345.6, "r2"), "-2346");
}

TEST(TrialTest, ThePluginsOfARecipeAreKnownByTheirContent) {
  const test::TemporaryFolder folder;
  const std::filesystem::path recipe = folder / "r.yaml";
  std::ofstream(recipe) << "plugins: [a.so, missing.so]\n";
  std::ofstream(folder / "a.so") << "one";
  std::ofstream(folder / "b.so") << "one";
  const auto before = plugin_hashes(recipe, {});
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before.at("a.so"), plugin_digest(folder / "a.so"));
  // The value of a setting replaces the recipe's list; its paths are not relative to the recipe.
  const std::string other = (folder / "b.so").string();
  EXPECT_EQ(plugin_hashes(recipe, {{"plugins", "[" + other + "]"}}).at(other), before.at("a.so"));
  std::ofstream(folder / "a.so") << "two";
  EXPECT_NE(plugin_hashes(recipe, {}).at("a.so"), before.at("a.so"));
}

TEST(JournalTest, FilesAreReadByTimeNotByName) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "results.jsonl")
      << R"({"event": "end", "trial": "a", "status": "waiting", "time": 1})"
      << "\n";
  std::ofstream(folder / "results-0.jsonl")
      << R"({"event": "end", "trial": "a", "status": "done", "time": 2})"
      << "\n";
  EXPECT_EQ(fold_states(read_journals(folder.path())).at("a").status, TrialStatus::done);
}

TEST(JournalTest, RecordsOfOneFileStayInItsOrderWhenTheClockIsSetBack) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "results.jsonl")
      << R"({"event": "start", "trial": "a", "time": 100})"
      << "\n"
      << R"({"event": "end", "trial": "a", "status": "done", "time": 99})"
      << "\n";
  std::ofstream(folder / "results-a.jsonl")
      << R"({"event": "end", "trial": "a", "status": "failed", "time": 98})"
      << "\n";
  const auto records = read_journals(folder.path());
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].at("status"), "failed");
  EXPECT_EQ(records[1].at("event"), "start");
  EXPECT_EQ(fold_states(records).at("a").status, TrialStatus::done);
}

TEST(SlotTest, DistributesSlotsOverDevicesAndCores) {
  const auto slots = make_slots({.devices = {"0", "1"}, .slots_per_device = 2},
                                {0, 1, 2, 3, 4, 5, 6, 7, 8}, {"0", "1"});
  ASSERT_EQ(slots.size(), 4U);
  EXPECT_EQ(slots[1].name, "gpu0.1");
  EXPECT_EQ(slots[1].gpu, "0");
  EXPECT_THAT(slots[1].cores, ElementsAre(2, 3));
  EXPECT_THAT(slots[3].cores, ElementsAre(6, 7));
}

TEST(SlotTest, ShareOutAllGpusAndCores) {
  const auto pairs =
      partition_into_slots(2, {0, 1, 2, 3}, {"0", "1", "2", "3", "4", "5", "6", "7"});
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].gpu, "0,1,2,3");
  EXPECT_EQ(pairs[1].gpu, "4,5,6,7");
  EXPECT_THAT(pairs[1].cores, ElementsAre(2, 3));
  const auto shared = partition_into_slots(3, {0, 1, 2, 3, 4, 5}, {"0", "1"});
  ASSERT_EQ(shared.size(), 3U);
  EXPECT_EQ(shared[0].gpu, "0");
  EXPECT_EQ(shared[1].gpu, "0");
  EXPECT_EQ(shared[2].gpu, "1");
  EXPECT_THAT(shared[2].cores, ElementsAre(4, 5));
  const auto uneven = partition_into_slots(2, {0, 1}, {"0", "1", "2"});
  EXPECT_EQ(uneven[0].gpu, "0") << "the first slot has the fewest GPUs";
  EXPECT_EQ(uneven[1].gpu, "1,2");
  EXPECT_EQ(partition_into_slots(2, {0}, {})[1].gpu, "");
  EXPECT_THAT(partition_into_slots(2, {0}, {})[1].cores, ElementsAre(0));
  EXPECT_THAT(partition_into_slots(4, {0, 1, 2, 3, 4, 5}, {})[1].cores, ElementsAre(1, 2));
}

TEST(SlotTest, AutoTakesEveryGpuOrTheCpu) {
  EXPECT_EQ(make_slots({}, {0, 1}, {"0", "1"}).size(), 2U);
  const auto slots = make_slots({}, {4, 5}, {});
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0].name, "cpu");
  EXPECT_EQ(slots[0].gpu, "");
  EXPECT_THAT(slots[0].cores, ElementsAre(4, 5));
}

class VisibleGpusTest : public ::testing::Test {
 protected:
  VisibleGpusTest() {
    if (const char* before = std::getenv(kVariable)) before_ = before;
    ::unsetenv(kVariable);
  }
  ~VisibleGpusTest() override {
    if (before_) ::setenv(kVariable, before_->c_str(), 1);
  }
  void have(const std::string& path) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "";
  }
  static constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";
  test::TemporaryFolder root_;
  std::optional<std::string> before_;
};

TEST_F(VisibleGpusTest, AreThoseOfTheDriverOrOfTheDevices) {
  EXPECT_TRUE(visible_gpus(root_.path()).empty());
  for (const char* name : {"nvidia0", "nvidia2", "nvidiactl", "nvidia-uvm", "nvidia"})
    have(std::string("dev/") + name);
  EXPECT_THAT(visible_gpus(root_.path()), ElementsAre("0", "1"));
  have("proc/driver/nvidia/gpus/0000:01:00.0/information");
  EXPECT_THAT(visible_gpus(root_.path()), ElementsAre("0"));
}

TEST_F(VisibleGpusTest, AreOneOnWslWithTheCudaLibrary) {
  have("dev/dxg");
  EXPECT_TRUE(visible_gpus(root_.path()).empty())
      << "without libcuda, the GPU is of another vendor";
  have("usr/lib/wsl/lib/libcuda.so.1");
  EXPECT_THAT(visible_gpus(root_.path()), ElementsAre("0"));
}

TEST_F(VisibleGpusTest, AreThoseThatTheVariableNames) {
  have("dev/nvidia0");
  ::setenv(kVariable, "3,GPU-ab", 1);
  EXPECT_THAT(visible_gpus(root_.path()), ElementsAre("3", "GPU-ab"));
  ::setenv(kVariable, "0,-1,1", 1);
  EXPECT_THAT(visible_gpus(root_.path()), ElementsAre("0")) << "CUDA ignores the rest";
  ::setenv(kVariable, "", 1);
  EXPECT_TRUE(visible_gpus(root_.path()).empty());
  ::unsetenv(kVariable);
}

TEST_F(VisibleGpusTest, AreWhatTheIndicesOfDevicesCount) {
  for (const char* name : {"nvidia0", "nvidia1"}) have(std::string("dev/") + name);
  const auto missing = [&](const std::vector<std::string>& devices) {
    return missing_gpus({.devices = devices}, visible_gpus(root_.path()));
  };
  EXPECT_THAT(missing({"0", "7", "1", "99999999999999999999"}),
              ElementsAre("7", "99999999999999999999"));
  for (const char* device : {"auto", "cpu"}) EXPECT_TRUE(missing({device}).empty()) << device;
  ::setenv(kVariable, "2,3", 1);
  EXPECT_THAT(missing({"1", "2"}), ElementsAre("2"));
  const auto slots = make_slots({.devices = {"0", "1"}}, {0, 1}, visible_gpus(root_.path()));
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[0].gpu, "2");
  EXPECT_EQ(slots[1].gpu, "3");
  EXPECT_EQ(slots[1].name, "gpu3");
  ::setenv(kVariable, "", 1);
  EXPECT_THAT(missing({"0"}), ElementsAre("0"));
  ::unsetenv(kVariable);
}

TEST(SlotTest, SlotsShareCoresWhereThereAreTooFew) {
  const auto slots =
      make_slots({.devices = {"cpu"}, .slots_per_device = 3, .cores_per_slot = 1}, {6, 7}, {});
  ASSERT_EQ(slots.size(), 3U);
  EXPECT_THAT(slots[2].cores, ElementsAre(6));
}

TEST(SlotTest, SeveralSlotsDivideACpuQuotaAndASingleOneKeepsAllCores) {
  std::vector<int> cores(64);
  std::iota(cores.begin(), cores.end(), 0);
  const SlotOptions eight{.devices = {"cpu"}, .slots_per_device = 8};
  for (const std::vector<Slot>& slots :
       {make_slots(eight, cores, {}, 8), partition_into_slots(8, cores, {}, 8)}) {
    std::vector<int> used;
    for (const Slot& slot : slots) used.insert(used.end(), slot.cores.begin(), slot.cores.end());
    EXPECT_THAT(used, ElementsAre(0, 8, 16, 24, 32, 40, 48, 56));
  }
  EXPECT_THAT(make_slots({.devices = {"0", "1"}}, cores, {"0", "1"}, 5)[1].cores,
              ElementsAre(32, 33));
  EXPECT_THAT(partition_into_slots(2, cores, {}, 5)[1].cores, ElementsAre(32, 33, 34));
  EXPECT_THAT(make_slots(eight, cores, {}, 1)[7].cores, ElementsAre(56));
  const SlotOptions set{.devices = {"0", "1"}, .slots_per_device = 1, .cores_per_slot = 6};
  EXPECT_THAT(make_slots(set, cores, {"0", "1"}, 8)[1].cores, ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_EQ(make_slots({}, cores, {}, 8)[0].cores, cores);
  EXPECT_EQ(partition_into_slots(1, cores, {}, 8)[0].cores, cores);
}

// The half widths are from scipy.stats.t.interval(0.95, n - 1, loc=mean, scale=sem).
TEST(IntervalTest, IsStudentsT) {
  const std::vector<double> three = {1, 2, 4};
  EXPECT_NEAR(mean_interval(three).mean, 7.0 / 3, 1e-12);
  EXPECT_NEAR(mean_interval(three).half_width, 3.7945830336, 1e-9);
  std::vector<double> thirteen;
  for (int i = 0; i < 13; ++i) thirteen.push_back(i * i);
  EXPECT_NEAR(mean_interval(thirteen).half_width, 29.2994297476, 3e-3);
  EXPECT_EQ(mean_interval(std::vector<double>{3}).half_width, 0);
}

class RunLogTest : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(folder_ / "log", std::ios::app) << text; }
  test::TemporaryFolder folder_;
  RunLog log_{folder_.path()};
};

TEST_F(RunLogTest, FollowsALogThatIsBeingWritten) {
  EXPECT_FALSE(log_.refresh());
  append("{\"step\": 3, \"epoch\": 0, \"loss\": 2}\n{\"top_1\": 0.5, \"ep");
  EXPECT_TRUE(log_.refresh());
  EXPECT_TRUE(log_.epochs().empty());
  EXPECT_EQ(log_.last_step().at("loss"), 2);
  append("och\": 0}\n");
  EXPECT_TRUE(log_.refresh());
  EXPECT_FALSE(log_.refresh());
  EXPECT_EQ(log_.epochs().at(0).at("top_1"), 0.5);
}

TEST_F(RunLogTest, KeepsWhatItKnowsWhileTheLogCannotBeOpened) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs a pipe to look at an object's type";
#endif
  append("{\"top_1\": 0.5, \"epoch\": 0}\n");
  EXPECT_TRUE(log_.refresh());
  append("{\"top_1\": 0.6, \"epoch\": 1}\n");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit no_more{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &no_more), 0);
  const bool any = log_.refresh();
  const std::size_t known = log_.epochs().size();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(any);
  EXPECT_EQ(known, 1U);
  EXPECT_TRUE(log_.refresh());
  EXPECT_EQ(log_.epochs().size(), 2U);
}

TEST_F(RunLogTest, RereadsALogThatAResumedRunTruncated) {
  append("{\"top_1\": 0.5, \"epoch\": 0}\n{\"top_1\": 0.6, \"epoch\": 1}\n");
  EXPECT_TRUE(log_.refresh());
  std::ofstream(folder_ / "log") << "{\"top_1\": 0.7, \"epoch\": 0}\n";
  EXPECT_TRUE(log_.refresh());
  EXPECT_EQ(log_.epochs().at(0).at("top_1"), 0.7);
  EXPECT_EQ(log_.epochs().size(), 1U) << "truncated epochs are dropped";
}

TEST_F(RunLogTest, RereadsALogThatGrewAgainAfterTruncation) {
  append("{\"top_1\": 0.5, \"epoch\": 0}\n{\"top_1\": 0.6, \"epoch\": 1}\n");
  EXPECT_TRUE(log_.refresh());
  std::ofstream(folder_ / "log") << "{\"top_1\": 0.7, \"note\": \"longer\", \"epoch\": 0}\n"
                                 << "{\"top_1\": 0.8, \"note\": \"longer\", \"epoch\": 2}\n";
  EXPECT_TRUE(log_.refresh());
  ASSERT_EQ(log_.epochs().size(), 2U);
  EXPECT_EQ(log_.epochs().at(0).at("top_1"), 0.7);
  EXPECT_EQ(log_.epochs().at(2).at("top_1"), 0.8);
}

}  // namespace
}  // namespace precast::tools
