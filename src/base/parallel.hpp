// Data-parallel loops of the grader's own work. Results never depend on the number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace kbh {

/// Processors this process may run on (its affinity mask, not the machine's count).
std::size_t available_processors();

/// Calls body(begin, end) on contiguous pieces of [0, n), in parallel, and returns when all are done. Pieces hold at
/// least `grain` items (but for the last), and there are at most as many pieces as processors; one piece runs in the
/// caller alone. `body` must not throw.
void parallel_for(std::size_t n, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace kbh
