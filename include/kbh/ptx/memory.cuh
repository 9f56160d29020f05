// Global memory that a kernel reads once: past L1, sixteen bytes at a time.
#pragma once

namespace kbh::ptx {

/// Volatile: loads are issued where they stand, before what the program does next, and all of a thread's are under way
/// at once. PTX ISA, "Data Movement and Conversion Instructions: ld.global.nc".
__device__ inline float4 load_once(const float4* from) {
  float4 loaded;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(loaded.x), "=f"(loaded.y), "=f"(loaded.z), "=f"(loaded.w)
               : "l"(from));
  return loaded;
}

/// `*from` where `wanted`, else `otherwise`. A predicate instead of a branch: nothing waits.
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
