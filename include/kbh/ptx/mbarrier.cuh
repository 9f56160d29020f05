// Barriers in shared memory that count arrivals and bytes: what a neighbour stores announces itself, so nobody waits
// longer than for the data, and no fence holds up the sender as that of a cluster barrier does. Each is used once.
#pragma once

#include <cstdint>

#include <cuda/ptx>
#include <kbh/ptx/cluster.cuh>

namespace kbh::ptx {

using Barrier = std::uint64_t;

/// Done when `arrivals` announcements have come, and the bytes that they announce. One thread makes it, then publishes.
/// PTX ISA, "mbarrier.init".
__device__ inline void make_barrier(Barrier* barrier, unsigned arrivals) {
  cuda::ptx::mbarrier_init(barrier, arrivals);
}

/// Before cluster_arrive_relaxed(): neighbours find the barriers made after cluster_wait(). PTX ISA,
/// "fence.mbarrier_init".
__device__ inline void publish_barriers() {
  cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
}

/// One arrival at the barrier of block `rank`, and `bytes` that will come with it. Relaxed: the bytes themselves are
/// ordered by send(). PTX ISA, "mbarrier.arrive.expect_tx".
__device__ inline void announce(Barrier* barrier, unsigned bytes, unsigned rank) {
  cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_relaxed, cuda::ptx::scope_cluster, cuda::ptx::space_cluster,
                                       at_rank(barrier, rank), bytes);
}

/// 4, 8 or 16 bytes into the shared memory of block `rank`, counted by its barrier. PTX ISA, "st.async".
template <typename T>
__device__ inline void send(T* shared, const T& value, Barrier* barrier, unsigned rank) {
  if constexpr (sizeof(T) == 16)
    cuda::ptx::st_async(reinterpret_cast<std::int32_t*>(at_rank(shared, rank)),
                        reinterpret_cast<const std::int32_t(&)[4]>(value), at_rank(barrier, rank));
  else
    cuda::ptx::st_async(at_rank(shared, rank), value, at_rank(barrier, rank));
}

/// PTX ISA, "mbarrier.try_wait".
__device__ inline void wait(Barrier* barrier) {
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier, 0)) {
  }
}

}  // namespace kbh::ptx
