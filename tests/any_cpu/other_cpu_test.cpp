// Tests the library that tests/any_cpu/run preloads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/program.h"

namespace precast::test {
namespace {

/// Runs print_cpu with the library preloaded and these variables set. @return its output, or its
/// exit code if it fails.
std::string printed(std::vector<std::string> environment) {
  environment.emplace_back("LD_PRELOAD=" OTHER_CPU);
  Program program({PRINT_CPU}, std::move(environment));
  const int code = program.wait();
  return code == 0 ? program.out : std::to_string(code);
}

TEST(OtherCpuTest, ChangesNothingByItself) {
  Program plain({PRINT_CPU});
  ASSERT_EQ(plain.wait(), 0) << plain.err;
  EXPECT_EQ(printed({}), plain.out);
  EXPECT_EQ(printed({"PRECAST_TEST_SIMD=", "PRECAST_TEST_CORES="}), plain.out);
}

TEST(OtherCpuTest, LimitsTheInstructionSet) {
  for (const std::string best : {"SSSE3", "SSE4"}) {
    const std::string cpu = printed({"PRECAST_TEST_SIMD=" + best});
    EXPECT_EQ(cpu.substr(0, cpu.find(' ')), best);
  }
  EXPECT_THAT(printed({"PRECAST_TEST_SIMD=none"}), testing::ContainsRegex("^(EMU128|SCALAR) "));
  EXPECT_EQ(printed({"PRECAST_TEST_SIMD=MMX"}), "2") << "the exit code";
}

TEST(OtherCpuTest, CountsOtherCores) {
  const std::string one = printed({"PRECAST_TEST_CORES=1"});
  EXPECT_EQ(one.substr(one.find(' ')), " 1\n");
}

}  // namespace
}  // namespace precast::test
