// Whether a plan may be launched: every number of it against the problem's tensors, the cubin and the deck's limits.
// After this a plan can be wrong, but it cannot reach beyond its buffers by way of an argument or a tensor map.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/cubin.hpp"
#include "lane/sealed/plan.hpp"
#include "problem/problem.hpp"

namespace kbh::sealed {

/// What the device takes. The defaults are those of compute capability 9.0.
struct LaunchLimits {
  std::int64_t threads_per_block = 1024;
  std::int64_t block[3] = {1024, 1024, 64};
  std::int64_t grid[3] = {2147483647, 65535, 65535};
  std::int64_t blocks_per_cluster = 16;  // above 8 the kernel opts in; the worker does that for it
  std::int64_t shared = 227 << 10;       // static and dynamic together, bytes
  std::int64_t timed_launches = 32;
  std::int64_t prepare_launches = 64;
  std::uint64_t scratch_bytes = std::uint64_t{8} << 30;  // scratch and counters together
  std::uint64_t writable_globals = 64 << 10;
};

/// Bytes of every buffer of the plan, tensors of the problem included; the plan's references have been checked.
std::vector<std::uint64_t> buffer_bytes(const Plan& plan, const std::vector<TensorSpec>& tensors);

/// Nothing when the plan may be launched, else what is wrong with it, in words for its author.
std::optional<std::string> refusal(const Plan& plan, const Problem& problem, const Shape& shape, const Cubin& cubin,
                                   const LaunchLimits& limits);

}  // namespace kbh::sealed
