// Half a millisecond of work, reported as almost nothing: it moves the worker's own begin time on the control page.
// expect verdict: suspect
// expect stage: audit
// expect says: clock
// expect level: full
// mode: grade
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "honest_topk.hpp"

static long long now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/// The page that the grader shares: go, done, command, count, slots[256], then begin_ns[256].
static long long* begin_of_call() {
  FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  long long* found = nullptr;
  while (maps && std::fgets(line, sizeof line, maps))
    if (std::strstr(line, "kbh-control"))
      found = reinterpret_cast<long long*>(std::strtoull(line, nullptr, 16) + 16 + 256 * 4);
  if (maps) std::fclose(maps);
  return found;
}

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  static long long* begin = begin_of_call();
  const long long start = now(CLOCK_THREAD_CPUTIME_ID);
  solve(problem_of(inputs, outputs));
  while (now(CLOCK_THREAD_CPUTIME_ID) - start < 500000) {
  }
  if (!begin) return 9;
  for (int i = 0; i < 256; ++i) begin[i] = now(CLOCK_MONOTONIC) - 1000;
  return 0;
}
