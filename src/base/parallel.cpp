#include "base/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace kbh {

std::size_t available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());  // more processors than the mask holds
}

void parallel_for(std::size_t n, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body) {
  if (n == 0) return;
  const std::size_t most = (n + std::max<std::size_t>(grain, 1) - 1) / std::max<std::size_t>(grain, 1);
  const std::size_t pieces = most == 1 ? 1 : std::min(most, available_processors());
  const std::size_t size = (n + pieces - 1) / pieces;

  std::vector<std::jthread> threads;
  threads.reserve(pieces);
  for (std::size_t begin = size; begin < n; begin += size) {
    const std::size_t end = std::min(begin + size, n);
    try {
      threads.emplace_back(body, begin, end);
    } catch (const std::system_error&) {
      body(begin, end);  // no thread to be had: slower, not wrong
    }
  }
  body(0, std::min(size, n));
}

}  // namespace kbh
