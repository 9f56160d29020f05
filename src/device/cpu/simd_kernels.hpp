// Loops that do nothing but move bytes or multiply and add, as fast as an instruction set allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kbh::cpu {

/// One instruction set's loops. Data is 64-byte aligned and a multiple of kKernelGranule long.
struct SimdKernels {
  using Read = std::uint64_t (*)(const std::byte* data, std::size_t bytes);
  using Write = void (*)(std::byte* data, std::size_t bytes, std::uint64_t value);
  using Copy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);
  using MultiplyAdd = double (*)(std::int64_t rounds, double start);

  std::string_view isa;
  Read read;              // one stream: the hardware prefetcher's favourite, best inside the caches
  Read read_streams;      // four streams and a software prefetch: best from memory. Both return the xor of all words
  Write write;            // ordinary stores: every line is read first
  Write write_streaming;  // non-temporal stores: past the caches
  Copy copy;
  Copy copy_streaming;
  MultiplyAdd fma_fp32;  // chains that begin at start, 2 start, ... and tend to 1; fused where the instruction set can
  MultiplyAdd fma_fp64;
  std::int64_t fp32_flops_per_round;
  std::int64_t fp64_flops_per_round;
  // Pairs of bf16 products summed in fp32; none where the processor has no instruction for it.
  MultiplyAdd dot_bf16 = nullptr;
  std::int64_t bf16_flops_per_round = 0;
};

inline constexpr std::size_t kKernelGranule = 4096;

/// All that this processor can run, the widest first; never empty.
const std::vector<SimdKernels>& simd_kernels();

}  // namespace kbh::cpu
