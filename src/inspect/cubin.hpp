// What a cubin holds, read from its bytes: kernels with their parameters and resources, writable globals, what it
// calls. nvcc writes one per architecture (ELF, machine 190); nothing of it runs here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kbh {

struct CubinParameter {
  std::uint32_t offset = 0;  // in the kernel's parameter space
  std::uint32_t size = 0;    // bytes
  bool operator==(const CubinParameter&) const = default;
};

struct CubinKernel {
  std::string name;  // mangled
  std::vector<CubinParameter> parameters;
  std::uint64_t static_shared = 0;  // bytes
  std::uint32_t registers = 0;
  std::uint32_t local = 0;  // bytes per thread: stack and spills
  std::string_view text;    // its instructions, 16 bytes each; points into the cubin
};

struct Cubin {
  std::uint32_t flags = 0;  // e_flags: the architecture among others
  std::vector<CubinKernel> kernels;
  std::map<std::string, std::uint64_t> writable_globals;  // bytes by name: __device__ variables
  std::uint64_t writable_bytes = 0;                       // .nv.global and .nv.global.init together
  std::vector<std::string> undefined;  // "malloc", "vprintf", "cudaLaunchDevice": needs of device code
  std::vector<std::string> problems;   // malformed parts

  [[nodiscard]] const CubinKernel* find(std::string_view name) const;
};

/// Every offset is checked against the size: the bytes are untrusted.
Cubin read_cubin(std::string_view bytes);

}  // namespace kbh
