#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kbh::cpu {

struct Topology {
  std::string model;                // "AMD EPYC 9334"
  std::vector<int> processors;      // those this process may run on
  double quota = 0;                 // processors' worth of time that the control group grants; 0: no limit
  std::int64_t l2_bytes = 0;        // of the largest L2 instance
  std::int64_t l2_total_bytes = 0;  // all L2 instances of our processors, summed
  std::int64_t llc_bytes = 0;       // last-level cache, all instances that our processors share, summed
  std::int64_t memory_bytes = 0;    // of the machine, or the control group's limit when that is lower
  std::string kernel;               // uname -r
  std::vector<std::string> isa;     // of avx2, fma, avx512f, avx512_bf16, amx_tile, sve ...: what matters to kernels
};

/// Read from sysfs and /proc; falls back to 32 MiB of last-level cache when the machine does not say.
const Topology& topology();

/// The same from a tree that holds proc/ and sys/, for the given processors. `kernel` stays empty.
Topology read_topology(const std::filesystem::path& root, std::vector<int> processors);

/// Identity for caches of measurements: hash of model, processors, quota, caches, memory, instruction sets and kernel.
std::string machine_id(const Topology& of = topology());

/// Pins the calling thread to one processor. False when the system refuses.
bool pin_this_thread(int processor);

}  // namespace kbh::cpu
