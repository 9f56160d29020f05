#include "device/cuda/device_code.hpp"

#include <vector>

#include "base/files.hpp"

namespace kbh::cuda {

Module load_device_code(std::string_view name) {
  const fs::path path = executable_path().parent_path() / "kbh-device" / (std::string(name) + ".fatbin");
  if (!fs::exists(path))
    fail(ErrorKind::machine, "{} is missing: build it with `make all`, on a machine with the CUDA toolkit",
         path.string());
  const std::string bytes = read_text(path);
  CUmodule module = nullptr;
  check(driver().load_module(&module, bytes.c_str()), "the grader's device code does not load");
  return Module(module);
}

CUfunction kernel(const Module& module, const char* name) {
  CUfunction function = nullptr;
  check(driver().function(&function, module.get(), name), name);
  return function;
}

void launch(CUfunction function, const Grid& grid, CUstream stream, std::initializer_list<void*> arguments) {
  CUlaunchConfig config{};
  config.gridDimX = grid.blocks;
  config.gridDimY = grid.rows;
  config.gridDimZ = 1;
  config.blockDimX = grid.threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = grid.shared;
  config.hStream = stream;
  std::vector<void*> pointers(arguments);
  check(driver().launch(&config, function, pointers.data(), nullptr), "cannot launch a kernel of the grader");
}

}  // namespace kbh::cuda
