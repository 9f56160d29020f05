#include "device/cpu/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <string>
#include <thread>

#include "base/files.hpp"

namespace kbh::cpu {
namespace {

using ::testing::ElementsAre;

/// A tree of proc/ and sys/ to read a machine from.
class FakeMachine : public ::testing::Test {
 protected:
  void file(const fs::path& name, const std::string& content) {
    fs::create_directories((root_.path() / name).parent_path());
    std::ofstream(root_.path() / name) << content << '\n';
  }

  void cache(int processor, int index, int level, const std::string& type, const std::string& size,
             const std::string& sharers) {
    const fs::path folder =
        "sys/devices/system/cpu/cpu" + std::to_string(processor) + "/cache/index" + std::to_string(index);
    file(folder / "level", std::to_string(level));
    file(folder / "type", type);
    file(folder / "size", size);
    file(folder / "shared_cpu_list", sharers);
  }

  Topology read(std::vector<int> processors) { return read_topology(root_.path(), std::move(processors)); }

  TempDir root_;
};

constexpr std::int64_t kMiB = 1 << 20;

TEST_F(FakeMachine, SharedCachesCountOnce) {
  for (const int p : {0, 1, 2, 3}) {
    const std::string core = p < 2 ? "0-1" : "2-3";  // two hardware threads a core
    cache(p, 0, 1, "Data", "32K", core);
    cache(p, 1, 1, "Instruction", "64K", core);
    cache(p, 2, 2, "Unified", "1024K", core);
    cache(p, 3, 3, "Unified", "32768K", "0-3");
  }
  const Topology machine = read({0, 1, 2, 3});
  EXPECT_EQ(machine.l2_bytes, kMiB);
  EXPECT_EQ(machine.l2_total_bytes, 2 * kMiB);
  EXPECT_EQ(machine.llc_bytes, 32 * kMiB);
}

TEST_F(FakeMachine, OnlyInstancesOfOurProcessorsCount) {
  for (const int p : {0, 1, 2}) {
    cache(p, 0, 2, "Unified", "1M", std::to_string(p));
    cache(p, 1, 3, "Unified", "16M", std::to_string(p));
  }
  EXPECT_EQ(read({0, 1, 2}).llc_bytes, 48 * kMiB);
  EXPECT_EQ(read({1}).llc_bytes, 16 * kMiB);
  EXPECT_EQ(read({0, 2}).l2_total_bytes, 2 * kMiB);
}

TEST_F(FakeMachine, AFourthLevelIsTheLast) {
  cache(0, 0, 2, "Unified", "256K", "0");
  cache(0, 1, 3, "Unified", "8M", "0");
  cache(0, 2, 4, "Unified", "128M", "0");
  EXPECT_EQ(read({0}).llc_bytes, 128 * kMiB);
}

TEST_F(FakeMachine, CachesOfInstructionsHoldNoData) {
  cache(0, 0, 2, "Data", "1M", "0");
  cache(0, 1, 2, "Instruction", "2M", "0");
  cache(0, 2, 3, "Instruction", "64M", "0");
  EXPECT_EQ(read({0}).l2_bytes, kMiB);
  EXPECT_EQ(read({0}).llc_bytes, 32 * kMiB);
}

TEST_F(FakeMachine, SilentMachinesGetTheAssumedCache) {
  EXPECT_EQ(read({0}).llc_bytes, 32 * kMiB);
  cache(0, 0, 2, "Unified", "2M", "0");
  EXPECT_EQ(read({0}).llc_bytes, 32 * kMiB);
  cache(0, 0, 2, "Unified", "64M", "0");
  EXPECT_EQ(read({0}).llc_bytes, 64 * kMiB);
}

TEST_F(FakeMachine, NonsenseInSysfsIsIgnored) {
  cache(0, 0, 2, "Unified", "many", "0");
  cache(0, 1, 3, "Unified", "-5K", "0");
  EXPECT_EQ(read({0}).l2_bytes, 0);
  EXPECT_EQ(read({0}).llc_bytes, 32 * kMiB);
}

TEST_F(FakeMachine, ModelMemoryAndInstructionSets) {
  file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Test CPU 9000\nflags\t\t: fpu avx2 fma avx512f syscall\n: odd");
  file("proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB");
  const Topology machine = read({0});
  EXPECT_EQ(machine.model, "Test CPU 9000");
  EXPECT_EQ(machine.memory_bytes, 2 * kMiB);
  EXPECT_THAT(machine.isa, ElementsAre("avx2", "fma", "avx512f"));
}

TEST_F(FakeMachine, ArmFeatures) {
  file("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd sve");
  EXPECT_THAT(read({0}).isa, ElementsAre("asimd", "sve"));
}

TEST_F(FakeMachine, ControlGroupsTightenTimeAndMemory) {
  file("proc/meminfo", "MemTotal: 8192 kB");
  EXPECT_EQ(read({0}).quota, 0);
  file("proc/self/cgroup", "0::/a/b");
  file("sys/fs/cgroup/cpu.max", "max 100000");
  file("sys/fs/cgroup/a/cpu.max", "150000 100000");
  file("sys/fs/cgroup/a/b/cpu.max", "300000 100000");
  file("sys/fs/cgroup/a/memory.max", "1048576");
  file("sys/fs/cgroup/a/b/memory.max", "max");
  EXPECT_EQ(read({0}).quota, 1.5);
  EXPECT_EQ(read({0}).memory_bytes, kMiB);
}

TEST_F(FakeMachine, ControlGroupsOfVersionOne) {
  file("proc/meminfo", "MemTotal: 8192 kB");
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(read({0}).quota, 0);
  EXPECT_EQ(read({0}).memory_bytes, 8 * kMiB);
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000");
  EXPECT_EQ(read({0}).quota, 0.5);
}

TEST(Topology, ThisMachine) {
  const Topology& machine = topology();
  EXPECT_FALSE(machine.processors.empty());
  EXPECT_FALSE(machine.model.empty());
  EXPECT_FALSE(machine.kernel.empty());
  EXPECT_GT(machine.llc_bytes, 0);
  EXPECT_GT(machine.memory_bytes, 0);
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(static_cast<int>(machine.processors.size()), CPU_COUNT(&set));
}

TEST(Topology, IdentityFollowsWhatMatters) {
  const Topology machine{.model = "m", .processors = {0, 1}, .llc_bytes = 1, .memory_bytes = 1 << 30};
  Topology rebooted = machine;
  rebooted.memory_bytes += 4096;
  EXPECT_EQ(machine_id(machine), machine_id(rebooted));
  EXPECT_EQ(machine_id().size(), 16u);
  const auto differs = [&](auto change) {
    Topology other = machine;
    change(other);
    return machine_id(other) != machine_id(machine);
  };
  EXPECT_TRUE(differs([](Topology& t) { t.model = "n"; }));
  EXPECT_TRUE(differs([](Topology& t) { t.processors = {0}; }));
  EXPECT_TRUE(differs([](Topology& t) { t.quota = 1; }));
  EXPECT_TRUE(differs([](Topology& t) { t.llc_bytes = 2; }));
  EXPECT_TRUE(differs([](Topology& t) { t.memory_bytes *= 2; }));
  EXPECT_TRUE(differs([](Topology& t) { t.isa = {"avx2"}; }));
  EXPECT_TRUE(differs([](Topology& t) { t.kernel = "7"; }));
}

TEST(Topology, Pinning) {
  std::thread([] {
    const int processor = topology().processors.back();
    ASSERT_TRUE(pin_this_thread(processor));
    EXPECT_EQ(::sched_getcpu(), processor);
    EXPECT_FALSE(pin_this_thread(1'000'000));
  }).join();
}

}  // namespace
}  // namespace kbh::cpu
