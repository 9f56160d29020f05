// What the 32 lanes of a warp know together, in one instruction each.
#pragma once

namespace kbh::ptx {

inline constexpr int kLanes = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

/// Of blocks with one dimension.
__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % kLanes; }
__device__ inline int warp_of_thread() { return static_cast<int>(threadIdx.x) / kLanes; }

/// PTX ISA, "Parallel Synchronization and Communication Instructions: redux.sync". Integers only on sm_90.
__device__ inline int warp_max(int value) { return __reduce_max_sync(kAllLanes, value); }
__device__ inline int warp_min(int value) { return __reduce_min_sync(kAllLanes, value); }
__device__ inline unsigned warp_sum(unsigned value) { return __reduce_add_sync(kAllLanes, value); }
__device__ inline int warp_sum(int value) { return __reduce_add_sync(kAllLanes, value); }

/// How many lanes say yes. PTX ISA, "vote.sync".
__device__ inline int lanes_where(bool yes) { return __popc(__ballot_sync(kAllLanes, yes)); }

/// The first lane that says yes. At least one does.
__device__ inline int first_lane_where(bool yes) { return __ffs(__ballot_sync(kAllLanes, yes)) - 1; }

}  // namespace kbh::ptx
