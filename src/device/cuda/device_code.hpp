// The grader's own kernels: one fat binary per .cu file of this folder, in kbh-device/ beside the executable.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "device/cuda/driver.hpp"

namespace kbh::cuda {

/// The kernels of src/device/cuda/NAME.cu, for the current context. Error(machine) when the file is missing.
Module load_device_code(std::string_view name);

/// Error(internal) when the module has no such kernel.
CUfunction kernel(const Module& module, const char* name);

struct Grid {
  unsigned blocks = 1;
  unsigned threads = 1;
  unsigned shared = 0;  // dynamic, bytes
  unsigned rows = 1;    // of blocks
};

/// Queues one of our own kernels. `arguments` point to its parameters.
void launch(CUfunction function, const Grid& grid, CUstream stream, std::initializer_list<void*> arguments);

}  // namespace kbh::cuda
