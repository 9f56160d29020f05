// Threads that outlive the call, asleep.
// mode: grade
#include <condition_variable>
#include <mutex>
#include <thread>

#include "honest_topk.hpp"

namespace {

struct Pool {
  std::mutex mutex;
  std::condition_variable wake, finished;
  Problem problem{};
  int64_t next = 0, left = 0;
  bool ending = false;
  std::vector<std::thread> threads;

  Pool() {
    for (int i = 0; i < 3; ++i) threads.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    wake.notify_all();
    for (std::thread& t : threads) t.join();
  }
  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return ending || next < problem.batch; });
      if (ending) return;
      const int64_t row = next++;
      const Problem p = problem;
      lock.unlock();
      solve_row(p, row);
      lock.lock();
      if (--left == 0) finished.notify_one();
    }
  }
  void run(const Problem& p) {
    std::unique_lock lock(mutex);
    problem = p;
    next = 0;
    left = p.batch;
    wake.notify_all();
    finished.wait(lock, [&] { return left == 0; });
  }
};

}  // namespace

extern "C" int kbh_create(const kbh_context*, void** self) {
  *self = new Pool;
  return 0;
}
extern "C" void kbh_destroy(void* self) { delete static_cast<Pool*>(self); }
extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  static_cast<Pool*>(self)->run(problem_of(inputs, outputs));
  return 0;
}
