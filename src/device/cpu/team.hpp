#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace kbh::cpu {

/// Lets a processor's other hardware thread, and the hypervisor, have the time of a waiting loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// One thread per processor, pinned, asleep between jobs.
class PinnedTeam {
 public:
  /// `member` counts from 0 in the order of the processors.
  using Job = std::function<void(std::size_t member)>;

  /// Error(machine) when the system refuses the threads.
  explicit PinnedTeam(const std::vector<int>& processors);
  ~PinnedTeam();
  PinnedTeam(const PinnedTeam&) = delete;
  PinnedTeam& operator=(const PinnedTeam&) = delete;

  [[nodiscard]] std::size_t size() const { return threads_.size(); }

  /// Every member runs the job once; returns when all have. The caller sleeps meanwhile: it would else take a processor
  /// from a member.
  void run(const Job& job);

  /// The two halves of run, for a caller that works too. `job` must live until finished() is true.
  void start(const Job& job);
  [[nodiscard]] bool finished() const { return pending_.load(std::memory_order_acquire) == 0; }

 private:
  void serve(std::size_t member, int processor);
  void end();

  const Job* job_ = nullptr;
  bool ending_ = false;
  std::atomic<std::uint32_t> round_{0};
  std::atomic<std::uint32_t> pending_{0};
  std::vector<std::thread> threads_;
};

/// Lets threads that are awake and pinned start together, to some tens of nanoseconds.
class SpinBarrier {
 public:
  explicit SpinBarrier(std::size_t members) : members_(members) {}

  void arrive_and_wait() {
    const std::size_t generation = generation_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(generation + 1, std::memory_order_release);
      return;
    }
    while (generation_.load(std::memory_order_acquire) == generation) relax();
  }

 private:
  const std::size_t members_;
  std::atomic<std::size_t> arrived_{0};
  std::atomic<std::size_t> generation_{0};
};

}  // namespace kbh::cpu
