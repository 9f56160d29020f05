#include "device/cpu/flush.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/files.hpp"
#include "device/cpu/team.hpp"
#include "device/cpu/topology.hpp"

namespace kbh::cpu {
namespace {

std::vector<std::string> threads_of_this_process() {
  std::vector<std::string> ids;
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) ids.push_back(entry.path().filename().string());
  return ids;
}

char state_of(const std::string& thread) {
  std::ifstream stream("/proc/self/task/" + thread + "/stat");
  std::string text;
  std::getline(stream, text);
  const std::size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? '?' : text[name_end + 2];
}

TEST(PinnedTeam, EveryMemberRunsEveryJobOnceOnItsProcessor) {
  const std::vector<int> processors = topology().processors;
  PinnedTeam team(processors);
  ASSERT_EQ(team.size(), processors.size());
  std::vector<int> runs(team.size());
  std::vector<int> places(team.size(), -1);
  for (int round = 0; round < 1000; ++round)
    team.run([&](std::size_t member) {
      ++runs[member];
      places[member] = ::sched_getcpu();
    });
  EXPECT_THAT(runs, ::testing::Each(1000));
  EXPECT_EQ(places, processors);
}

TEST(PinnedTeam, TheCallerMayWorkMeanwhile) {
  PinnedTeam team({topology().processors.front()});
  std::atomic<bool> release{false};
  const PinnedTeam::Job job = [&](std::size_t) { release.wait(false); };
  team.start(job);
  EXPECT_FALSE(team.finished());
  release = true;
  release.notify_all();
  while (!team.finished()) std::this_thread::yield();
}

TEST(PinnedTeam, EmptyTeam) {
  PinnedTeam team({});
  team.run([](std::size_t) { FAIL(); });
  EXPECT_TRUE(team.finished());
}

TEST(CacheFlusher, CoversTheCachesFourTimes) {
  CacheFlusher flusher;
  EXPECT_GE(flusher.bytes(), 4 * topology().llc_bytes);
  EXPECT_GE(flusher.bytes(), 4 * topology().l2_total_bytes);
  flusher.flush();
  flusher.flush();
}

TEST(CacheFlusher, ThreadsSleepBetweenFlushesAndEndWithIt) {
  const std::vector<std::string> before = threads_of_this_process();
  {
    CacheFlusher flusher;
    flusher.flush();
    std::vector<std::string> ours;
    for (const std::string& thread : threads_of_this_process())
      if (std::find(before.begin(), before.end(), thread) == before.end()) ours.push_back(thread);
    EXPECT_EQ(ours.size(), topology().processors.size());
    for (const std::string& thread : ours) {
      // They fall asleep a moment after flush() returns; that they do not is what a time-out here would show.
      const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (state_of(thread) != 'S' && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
      EXPECT_EQ(state_of(thread), 'S');
    }
  }
  EXPECT_EQ(threads_of_this_process().size(), before.size());
}

TEST(SpeedProbe, TakesTime) { EXPECT_GT(speed_probe_ns(), 1000); }

#if defined(__x86_64__)
/// Share of the lines of `hot` that answer faster than memory can, in percent.
double resident_percent(const std::vector<std::uint64_t>& hot, const std::vector<std::size_t>& order) {
  std::size_t fast = 0;
  std::uint64_t sum = 0;
  for (const std::size_t word : order) {
    unsigned int processor = 0;
    __builtin_ia32_lfence();
    const std::uint64_t start = __builtin_ia32_rdtscp(&processor);
    __builtin_ia32_lfence();
    sum += *static_cast<const volatile std::uint64_t*>(&hot[word]);
    __builtin_ia32_lfence();
    if (__builtin_ia32_rdtscp(&processor) - start < 230) ++fast;  // 90 ns at 2.6 GHz; memory answers after 160
  }
  EXPECT_GT(sum, 0u);
  return 100.0 * static_cast<double>(fast) / static_cast<double>(order.size());
}

// The claim of flush.hpp, by timing single lines: it needs a machine without other work, so it is not part of the usual
// run.
TEST(CacheFlusher, NothingStaysCached) {
  if (!std::getenv("KBH_SOAK")) GTEST_SKIP() << "times single cache lines: set KBH_SOAK=1 on a quiet machine";
  CacheFlusher flusher;
  std::thread([&] {
    ASSERT_TRUE(pin_this_thread(topology().processors.front()));
    constexpr std::size_t kWordsPerProbe = 64;  // every eighth line, so that no probe prefetches another's line
    std::vector<std::uint64_t> hot((std::size_t{4} << 20) / sizeof(std::uint64_t), 1);
    std::vector<std::size_t> order(hot.size() / kWordsPerProbe);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i * kWordsPerProbe + 8 * (i * 2654435761 % 8);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    const auto heat = [&] {
      for (int pass = 0; pass < 6; ++pass) EXPECT_GT(std::accumulate(hot.begin(), hot.end(), std::uint64_t{0}), 0u);
    };
    heat();
    const double before = resident_percent(hot, order);
    heat();
    flusher.flush();
    const double after = resident_percent(hot, order);
    RecordProperty("resident_before_percent", std::to_string(before));
    RecordProperty("resident_after_percent", std::to_string(after));
    EXPECT_GT(before, 50);
    EXPECT_LT(after, 2);
  }).join();
}
#endif

}  // namespace
}  // namespace kbh::cpu
