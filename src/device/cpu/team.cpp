#include "device/cpu/team.hpp"

#include <system_error>

#include "base/error.hpp"
#include "device/cpu/topology.hpp"

namespace kbh::cpu {

PinnedTeam::PinnedTeam(const std::vector<int>& processors) {
  threads_.reserve(processors.size());
  try {
    for (std::size_t member = 0; member < processors.size(); ++member)
      threads_.emplace_back([this, member, processor = processors[member]] { serve(member, processor); });
  } catch (const std::system_error& error) {
    const std::size_t started = size();
    end();
    fail(ErrorKind::machine, "cannot start {} threads ({} started): {}: raise the limit on processes (ulimit -u)",
         processors.size(), started, error.what());
  }
}

PinnedTeam::~PinnedTeam() { end(); }

void PinnedTeam::end() {
  ending_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PinnedTeam::start(const Job& job) {
  expect(finished(), "one job at a time");
  job_ = &job;
  pending_.store(static_cast<std::uint32_t>(size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

void PinnedTeam::run(const Job& job) {
  start(job);
  for (std::uint32_t left = pending_.load(std::memory_order_acquire); left != 0;
       left = pending_.load(std::memory_order_acquire))
    pending_.wait(left, std::memory_order_acquire);
}

void PinnedTeam::serve(std::size_t member, int processor) {
  pin_this_thread(processor);  // refused in some containers: the work is then right, the numbers are noisier
  for (std::uint32_t seen = 0;; ++seen) {
    round_.wait(seen, std::memory_order_acquire);
    if (ending_) return;
    (*job_)(member);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

}  // namespace kbh::cpu
