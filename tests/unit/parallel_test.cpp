#include "base/parallel.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

namespace kbh {
namespace {

TEST(Parallel, EveryItemIsVisitedOnce) {
  for (const std::size_t n : {0u, 1u, 2u, 7u, 1000u})
    for (const std::size_t grain : {0u, 1u, 3u, 5000u}) {
      std::vector<std::atomic<int>> visits(n);
      parallel_for(n, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const auto& count : visits) EXPECT_EQ(count, 1) << n << " " << grain;
    }
}

TEST(Parallel, LittleWorkStaysInTheCaller) {
  std::thread::id worker;
  parallel_for(100, 100, [&](std::size_t, std::size_t) { worker = std::this_thread::get_id(); });
  EXPECT_EQ(worker, std::this_thread::get_id());
}

TEST(Parallel, CountsTheProcessorsThisProcessMayUse) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(available_processors(), static_cast<std::size_t>(CPU_COUNT(&before)));

  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) GTEST_SKIP() << "affinity cannot be set here";
  EXPECT_EQ(available_processors(), 1u);
  ::sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace kbh
