#include "framework/core/system.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

class SystemTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << '\n';
  }
  [[nodiscard]] const std::filesystem::path& root() const { return root_.path(); }

 private:
  test::TemporaryFolder root_;
};

TEST_F(SystemTest, HasNoLimitsWhereThereAreNoGroups) {
  const CgroupLimits limits = cgroup_limits(root());
  EXPECT_EQ(limits.version, "none");
  EXPECT_FALSE(limits.cpus);
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_EQ(memory_limit_bytes(root()), 0U);
}

TEST_F(SystemTest, ReadsVersion2) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/cpu.max", "150000 100000");
  write("sys/fs/cgroup/memory.max", "4294967296");
  const CgroupLimits limits = cgroup_limits(root());
  EXPECT_EQ(limits.version, "v2");
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 4294967296U);
}

TEST_F(SystemTest, Version2MaxIsNoLimit) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/cpu.max", "max 100000");
  write("sys/fs/cgroup/memory.max", "max");
  const CgroupLimits limits = cgroup_limits(root());
  EXPECT_FALSE(limits.cpus);
  EXPECT_FALSE(limits.memory_bytes);
}

TEST_F(SystemTest, TakesTheTightestLimitOfTheGroupAndItsParents) {
  write("proc/self/cgroup", "0::/job/step");
  write("sys/fs/cgroup/job/memory.max", "1000");
  write("sys/fs/cgroup/job/cpu.max", "300000 100000");
  write("sys/fs/cgroup/job/step/memory.max", "2000");
  write("sys/fs/cgroup/job/step/cpu.max", "200000 100000");
  const CgroupLimits limits = cgroup_limits(root());
  EXPECT_EQ(limits.memory_bytes, 1000U);
  EXPECT_EQ(limits.cpus, 2.0);
}

TEST_F(SystemTest, ReadsVersion1) {
  write("proc/self/cgroup", "5:memory:/box\n3:cpu,cpuacct:/box");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "536870912");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000");
  const CgroupLimits limits = cgroup_limits(root());
  EXPECT_EQ(limits.version, "v1");
  EXPECT_EQ(limits.cpus, 0.5);
  EXPECT_EQ(limits.memory_bytes, 536870912U);
}

TEST_F(SystemTest, Version1WithoutLimitsHasNone) {
  write("proc/self/cgroup", "5:memory:/\n3:cpu:/");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  const CgroupLimits limits = cgroup_limits(root());
  EXPECT_FALSE(limits.cpus);
  EXPECT_FALSE(limits.memory_bytes);
}

TEST_F(SystemTest, ReadsBothVersionsOfAHybridSystem) {
  write("proc/self/cgroup", "4:memory:/\n0::/");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576");
  write("sys/fs/cgroup/unified/cpu.max", "100000 100000");
  const CgroupLimits limits = cgroup_limits(root());
  EXPECT_EQ(limits.version, "v1+v2");
  EXPECT_EQ(limits.cpus, 1.0);
  EXPECT_EQ(limits.memory_bytes, 1048576U);
}

TEST_F(SystemTest, ReadsTheMountsRootWhenTheGroupsPathIsTheHosts) {
  write("proc/self/cgroup", "4:memory:/docker/0123456789abcdef");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2048");
  EXPECT_EQ(cgroup_limits(root()).memory_bytes, 2048U);
}

TEST_F(SystemTest, DoesNotLeaveTheMountOnAStrangePath) {
  write("proc/self/cgroup", "0::/../..");
  write("memory.max", "1");
  write("sys/fs/cgroup/memory.max", "77");
  EXPECT_EQ(cgroup_limits(root()).memory_bytes, 77U);
}

TEST_F(SystemTest, MemoryIsTheSmallerOfMachineAndGroup) {
  write("proc/meminfo", "MemTotal:       16 kB\nMemAvailable:   8 kB");
  EXPECT_EQ(memory_limit_bytes(root()), 16384U);
  EXPECT_EQ(meminfo_bytes("MemAvailable", root()), 8192U);
  EXPECT_FALSE(meminfo_bytes("MemFree", root()));
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/memory.max", "4096");
  EXPECT_EQ(memory_limit_bytes(root()), 4096U);
}

TEST_F(SystemTest, AQuotaBelowOneCoreLeavesOne) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/cpu.max", "10000 100000");
  EXPECT_EQ(usable_cores(root()), 1);
}

TEST_F(SystemTest, AQuotaAboveTheCoresChangesNothing) {
  const int cores = usable_cores(root());
  EXPECT_GE(cores, 1);
  EXPECT_LE(cores, static_cast<int>(std::thread::hardware_concurrency()));
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/cpu.max", "100000000 100000");
  EXPECT_EQ(usable_cores(root()), cores);
}

TEST(SystemHereTest, KnowsTheMemoryOfThisMachine) {
  EXPECT_GT(memory_limit_bytes(), std::uint64_t{64} << 20);
}

TEST_F(SystemTest, CacheSizesAreThoseOfDataCachesAndTheLastLevelIsTheLargest) {
  EXPECT_EQ(cache_sizes(root()), CacheSizes());
  EXPECT_EQ(last_level_cache_bytes(root()), 0U);
  const auto cache = [&](int number, const char* level, const char* type, const char* size) {
    const std::string folder =
        "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(number) + "/";
    write(folder + "level", level);
    write(folder + "type", type);
    write(folder + "size", size);
  };
  cache(0, "1", "Data", "48K");
  cache(1, "1", "Instruction", "64K");
  cache(2, "2", "Unified", "2M");
  EXPECT_EQ(cache_sizes(root()), (CacheSizes{48, 2048, 0}));
  EXPECT_EQ(last_level_cache_bytes(root()), 2U << 20);
  cache(3, "3", "Unified", "105M");
  EXPECT_EQ(cache_sizes(root()), (CacheSizes{48, 2048, 105 * 1024}));
  EXPECT_EQ(last_level_cache_bytes(root()), 105U << 20);
  cache(3, "3", "Unified", "many");
  EXPECT_EQ(cache_sizes(root()).l3_kib, 0);
  const std::string unnamed = "sys/devices/system/cpu/cpu0/cache/index4/";
  write(unnamed + "type", "Unified");
  write(unnamed + "size", "8M");
  EXPECT_EQ(cache_sizes(root()), (CacheSizes{48, 2048, 0}));
  EXPECT_EQ(last_level_cache_bytes(root()), 8U << 20) << "a cache without a level";
}

}  // namespace
}  // namespace precast
