// Helper threads that sleep between calls, for host-lane submissions: a thread may outlive a call asleep only.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace kbh::host {

/// Runs one job on the calling thread and as many helpers as wake up in time. A helper that wakes late finds the job
/// closed and goes back to sleep: nobody waits for it.
class Crew {
 public:
  /// Hands itself out the pieces of the job; returns when none is left. Member 0 is the calling thread.
  using Work = std::function<void(int member)>;

  Crew(int members, Work work) : work_(std::move(work)) {
    for (int member = 1; member < members; ++member) helpers_.emplace_back([this, member] { help(member); });
  }

  ~Crew() {
    stop_ = true;
    epoch_.fetch_add(1);
    epoch_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }

  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  [[nodiscard]] int members() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Returns when the job is done. Calls at most `helpers`.
  void run(int helpers) {
    if (helpers <= 0) return work_(0);
    if (caller_ != pthread_self()) {
      pin(0);
      caller_ = pthread_self();
    }
    to_call_.store(helpers, std::memory_order_relaxed);
    open_.store(true);
    epoch_.fetch_add(1);
    call_one();
    work_(0);
    open_.store(false);
    while (busy_.load() != 0) std::this_thread::yield();
  }

 private:
  /// A call costs its caller the system call (20 us on a virtual machine whose other processors are halted), so the
  /// calling thread wakes one helper and the helpers wake each other.
  void call_one() {
    if (to_call_.fetch_sub(1, std::memory_order_relaxed) > 0) epoch_.notify_one();
  }

  void help(int member) {
    pin(member);
    for (uint32_t seen = 0;;) {
      epoch_.wait(seen);
      seen = epoch_.load();
      if (stop_) return;
      // Announced first, asked second: run() closes first and counts second, so one of the two sees the other.
      busy_.fetch_add(1);
      if (open_.load()) {
        call_one();
        call_one();
        work_(member);
      }
      busy_.fetch_sub(1);
    }
  }

  /// The processors that this process may use. Asks for all first: an earlier crew may have pinned this thread.
  static std::vector<int> processors() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) CPU_SET(processor, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
    std::vector<int> found;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return found;
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &allowed)) found.push_back(processor);
    return found;
  }

  /// One processor for each member, the calling thread too: left to itself the scheduler now and then wakes a helper on
  /// the caller's processor, where it waits until the call is over (1.7 times the time on two processors, for as long
  /// as the threads live). Refused in some sandboxes: no harm.
  void pin(int member) const {
    if (processors_.empty()) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processors_[static_cast<size_t>(member) % processors_.size()], &one);
    sched_setaffinity(0, sizeof one, &one);
  }

  Work work_;
  const std::vector<int> processors_ = processors();
  pthread_t caller_{};  // the thread that is pinned as member 0
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> open_{false};
  std::atomic<int> to_call_{0};
  alignas(64) std::atomic<int> busy_{0};
  std::vector<std::thread> helpers_;
};

}  // namespace kbh::host
