#include "framework/launch/rank_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

/// `a` with the variables of `b`, which replace those of `a`. An empty value counts as not set.
Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

RankInfo find(const Variables& variables, const RendezvousEndpoint& fallback = {}) {
  return find_rank_info(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      fallback);
}

std::string error_of(const Variables& variables) {
  try {
    find(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

void expect_ranks(const RankInfo& info, int rank, int world, int local_rank, int local_world) {
  EXPECT_EQ(info.rank, rank);
  EXPECT_EQ(info.world, world);
  EXPECT_EQ(info.local_rank, local_rank);
  EXPECT_EQ(info.local_world, local_world);
}

const Variables kOurs{{"PRECAST_RANK", "1"},
                      {"PRECAST_WORLD_SIZE", "2"},
                      {"PRECAST_LOCAL_RANK", "1"},
                      {"PRECAST_LOCAL_WORLD_SIZE", "2"},
                      {"PRECAST_STORE", "127.0.0.1:4242"}};
const Variables kTorchrun{{"RANK", "5"},
                          {"WORLD_SIZE", "8"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "host7"},
                          {"MASTER_PORT", "29400"}};
const Variables kSrun{{"SLURM_PROCID", "6"},
                      {"SLURM_NTASKS", "7"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "3"},
                      {"SLURM_JOB_ID", "1000"},
                      {"SLURM_STEP_ID", "2"},
                      {"SLURM_STEPID", "2"},
                      {"SLURM_TASKS_PER_NODE", "2(x3),1"},
                      {"SLURM_STEP_NODELIST", "node[08-11]"},
                      {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kPmi{{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}};

TEST(RankInfoTest, IsSingleWithoutVariables) {
  const RankInfo info = find({}, {"host3", 7});
  expect_ranks(info, 0, 1, 0, 1);
  EXPECT_EQ(info.source, "single");
  EXPECT_EQ(info.address, "host3");
  EXPECT_EQ(info.port, 7);
}

TEST(RankInfoTest, ReadsOurLauncher) {
  const RankInfo info = find(kOurs);
  expect_ranks(info, 1, 2, 1, 2);
  EXPECT_EQ(info.source, "precast");
  EXPECT_EQ(info.address, "127.0.0.1");
  EXPECT_EQ(info.port, 4242);
  EXPECT_EQ(find(kOurs + Variables{{"PRECAST_STORE", "[::1]:80"}}).address, "::1");
}

TEST(RankInfoTest, ReadsTorchrun) {
  const RankInfo info = find(kTorchrun);
  expect_ranks(info, 5, 8, 1, 4);
  EXPECT_EQ(info.source, "torchrun");
  EXPECT_EQ(info.address, "host7");
  EXPECT_EQ(info.port, 29400);
}

TEST(RankInfoTest, CountsRanksSetByHandAsThoseOfOneHost) {
  const RankInfo info = find(kTorchrun + Variables{{"LOCAL_WORLD_SIZE", ""}});
  expect_ranks(info, 5, 8, 1, 8);
  EXPECT_FALSE(info.local_world_known);
}

TEST(RankInfoTest, KnowsTheRanksOfAHostIfTheLauncherCountsThem) {
  for (const Variables& variables : {Variables{}, kOurs, kTorchrun, kSrun, kOpenMpi})
    EXPECT_TRUE(find(variables).local_world_known) << find(variables).source;
  EXPECT_FALSE(find(kPmi).local_world_known);
  EXPECT_TRUE(find(kPmi + Variables{{"MPI_LOCALNRANKS", "2"}}).local_world_known);
}

TEST(RankInfoTest, ReadsAnSrunStep) {
  const RankInfo info = find(kSrun);
  expect_ranks(info, 6, 7, 0, 1);
  EXPECT_EQ(info.source, "Slurm");
  EXPECT_EQ(info.address, "node08");
  expect_ranks(
      find(kSrun + Variables{{"SLURM_PROCID", "3"}, {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "1"}}),
      3, 7, 1, 2);
}

TEST(RankInfoTest, PrefersTheStepsTasksToTheJobs) {
  const Variables step{{"SLURM_STEP_TASKS_PER_NODE", "3,2,1,1"},
                       {"SLURM_NODEID", "0"},
                       {"SLURM_LOCALID", "2"},
                       {"SLURM_PROCID", "2"}};
  expect_ranks(find(kSrun + step), 2, 7, 2, 3);
  const Variables plain{{"SLURM_TASKS_PER_NODE", ""}, {"SLURM_NTASKS_PER_NODE", "2"}};
  EXPECT_EQ(find(kSrun + plain).local_world, 2);
}

TEST(RankInfoTest, TakesTheSrunHostsAddressOnlyWithoutANodeList) {
  EXPECT_EQ(find(kSrun + Variables{{"SLURM_STEP_NODELIST", ""}}).address, "10.0.0.1");
}

TEST(RankInfoTest, GivesSlurmJobsAndStepsPortsOfTheirOwn) {
  const int port = find(kSrun).port;
  EXPECT_EQ(find(kSrun + Variables{{"SLURM_PROCID", "2"}}).port, port);
  EXPECT_NE(find(kSrun + Variables{{"SLURM_STEP_ID", "3"}}).port, port);
  EXPECT_NE(find(kSrun + Variables{{"SLURM_JOB_ID", "1001"}}).port, port);
  for (const char* job : {"0", "1", "297", "2147483647"}) {
    const int other = find(kSrun + Variables{{"SLURM_JOB_ID", job}}).port;
    EXPECT_GE(other, 20000) << job;
    EXPECT_LT(other, 50000) << job;
  }
}

TEST(RankInfoTest, IsSingleInABatchScriptWithoutSrun) {
  // The environment of a batch script of 4 tasks on 4 nodes.
  EXPECT_EQ(find({{"SLURM_NNODES", "4"},
                  {"SLURM_JOBID", "200505"},
                  {"SLURM_JOB_ID", "200505"},
                  {"SLURM_NTASKS", "4"},
                  {"SLURM_TASKS_PER_NODE", "1(x4)"},
                  {"SLURM_NODEID", "0"},
                  {"SLURM_NPROCS", "4"},
                  {"SLURM_PROCID", "0"},
                  {"SLURM_LOCALID", "0"},
                  {"SLURM_JOB_NODELIST", "gnode[10,20,25,37]"}})
                .source,
            "single");
}

TEST(RankInfoTest, IsSingleInAnInteractiveShellOfSlurm) {
  EXPECT_EQ(find(kSrun + Variables{{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEPID", ""}}).source,
            "single");
}

TEST(RankInfoTest, ReadsOpenMpiAndMeetsWhereTheRecipeSays) {
  const RankInfo info = find(kOpenMpi, {"host9", 500});
  expect_ranks(info, 3, 4, 1, 2);
  EXPECT_EQ(info.source, "Open MPI");
  EXPECT_EQ(info.address, "host9");
  EXPECT_EQ(info.port, 500);
}

TEST(RankInfoTest, ReadsPmi) {
  const RankInfo info = find(kPmi);
  expect_ranks(info, 1, 3, 1, 3);
  EXPECT_EQ(info.source, "PMI");
  EXPECT_EQ(info.address, "localhost");
  EXPECT_EQ(info.port, 12355);
  expect_ranks(find(kPmi + Variables{{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}}), 1, 3, 0,
               2);
}

TEST(RankInfoTest, OurLauncherWinsWithoutAWarning) {
  const RankInfo info = find(kOurs + kTorchrun + kSrun + kOpenMpi + kPmi);
  EXPECT_EQ(info.source, "precast");
  EXPECT_EQ(info.warning, "");
}

TEST(RankInfoTest, TorchrunWinsOverSlurmAndTheWarningNamesBoth) {
  const RankInfo info = find(kTorchrun + kSrun);
  EXPECT_EQ(info.source, "torchrun");
  EXPECT_EQ(info.rank, 5);
  EXPECT_THAT(info.warning, Names("torchrun", "RANK=5", "WORLD_SIZE=8", "Slurm", "SLURM_PROCID=6",
                                  "SLURM_NTASKS=7"));
}

TEST(RankInfoTest, SourcesThatAgreeGiveNoWarningAndSlurmKnowsTheAddress) {
  const RankInfo info = find(kSrun + Variables{{"PMI_RANK", "6"}, {"PMI_SIZE", "7"}});
  EXPECT_EQ(info.source, "Slurm");
  EXPECT_EQ(info.address, "node08");
  EXPECT_EQ(info.warning, "");
}

TEST(RankInfoTest, MpiWinsOverTheSlurmStepOfItsDaemons) {
  const RankInfo info = find(kSrun + kOpenMpi);
  EXPECT_EQ(info.source, "Open MPI");
  EXPECT_EQ(info.rank, 3);
  EXPECT_THAT(info.warning, Names("Open MPI", "OMPI_COMM_WORLD_RANK=3", "Slurm", "SLURM_PROCID=6"));
}

TEST(RankInfoTest, ErrorsNameVariableValueExpectationAndSource) {
  EXPECT_THAT(error_of(kTorchrun + Variables{{"RANK", "8"}}),
              Names("torchrun", "RANK", 0, 7, "\"8\""));
  EXPECT_THAT(error_of(kTorchrun + Variables{{"MASTER_PORT", ""}}),
              Names("torchrun", "MASTER_PORT", 1, 65535));
}

TEST(RankInfoTest, RefusesWrongValues) {
  struct Case {
    Variables base;
    const char* variable;
    const char* value;
  };
  const std::vector<Case> cases{{kTorchrun, "RANK", "-1"},
                                {kTorchrun, "RANK", "two"},
                                {kTorchrun, "RANK", "5 "},
                                {kTorchrun, "WORLD_SIZE", ""},
                                {kTorchrun, "WORLD_SIZE", "0"},
                                {kTorchrun, "WORLD_SIZE", "99999999999"},
                                {kTorchrun, "LOCAL_RANK", "4"},
                                {kTorchrun, "LOCAL_RANK", ""},
                                {kTorchrun, "LOCAL_WORLD_SIZE", "9"},
                                {kTorchrun, "MASTER_ADDR", ""},
                                {kTorchrun, "MASTER_PORT", "65536"},
                                {kOurs, "PRECAST_WORLD_SIZE", ""},
                                {kOurs, "PRECAST_STORE", ""},
                                {kOurs, "PRECAST_STORE", "host"},
                                {kOurs, "PRECAST_STORE", ":80"},
                                {kOurs, "PRECAST_STORE", "host:0"},
                                {kOurs, "PRECAST_STORE", "host:80x"},
                                {kSrun, "SLURM_PROCID", "7"},
                                {kSrun, "SLURM_LOCALID", "1"},
                                {kSrun, "SLURM_NODEID", "x"},
                                {kSrun, "SLURM_TASKS_PER_NODE", "2(x"},
                                {kSrun, "SLURM_TASKS_PER_NODE", "8(x4)"},
                                {kSrun, "SLURM_STEP_NODELIST", "node[08-"},
                                {kSrun, "SLURM_STEP_ID", "two"},
                                {kOpenMpi, "OMPI_COMM_WORLD_SIZE", "3"},
                                {kOpenMpi, "OMPI_COMM_WORLD_LOCAL_RANK", ""},
                                {kPmi, "PMI_SIZE", "x"}};
  for (const Case& wrong : cases) {
    const std::string error = error_of(wrong.base + Variables{{wrong.variable, wrong.value}});
    // A size that is too small is reported as a rank that is too large.
    const std::string named = std::string(wrong.variable) == "OMPI_COMM_WORLD_SIZE"
                                  ? "OMPI_COMM_WORLD_RANK"
                                  : wrong.variable;
    EXPECT_THAT(error, HasSubstr(": " + named + ": ")) << wrong.value;
  }
}

}  // namespace
}  // namespace precast
