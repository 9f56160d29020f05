// Global memory that a kernel reads once: past L1, sixteen bytes at a time.
#pragma once

namespace kbh::ptx {

/// `*from` where `wanted`, else `otherwise`. Volatile: loads are issued where they stand, before what the program does
/// next, and all of a thread's are under way at once. A predicate instead of a branch, for the same reason.
/// PTX ISA, "Data Movement and Conversion Instructions: ld.global.nc".
__device__ inline float4 load_once(const float4* from, bool wanted, float4 otherwise) {
  asm volatile(
      "{\n"
      "  .reg .pred wanted;\n"
      "  setp.ne.s32 wanted, %5, 0;\n"
      "  @wanted ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];\n"
      "}"
      : "+f"(otherwise.x), "+f"(otherwise.y), "+f"(otherwise.z), "+f"(otherwise.w)
      : "l"(from), "r"(static_cast<int>(wanted)));
  return otherwise;
}

}  // namespace kbh::ptx
