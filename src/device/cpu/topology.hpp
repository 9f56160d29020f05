#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kbh::cpu {

struct Topology {
  std::string model;              // "AMD EPYC 9334"
  std::vector<int> processors;    // those this process may run on
  std::int64_t l2_bytes = 0;      // per core
  std::int64_t llc_bytes = 0;     // last-level cache, all instances that our processors share, summed
  std::int64_t memory_bytes = 0;
  std::string kernel;             // uname -r
  std::vector<std::string> isa;   // of avx2, fma, avx512f, avx512_bf16, amx_tile, sve ...: what matters to kernels
};

/// Read from sysfs and /proc; falls back to 32 MiB of last-level cache when the machine does not say.
const Topology& topology();

/// Identity for caches of measurements: hash of model, processors, caches, memory and kernel.
std::string machine_id();

/// Pins the calling thread to one processor. False when the system refuses.
bool pin_this_thread(int processor);

}  // namespace kbh::cpu
