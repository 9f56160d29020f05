#pragma once

#include <filesystem>
#include <string>

#include "lane/compile.hpp"

namespace kbh::sealed {

/// The toolkit's root (it holds bin/nvcc): $CUDA_HOME, else /usr/local/cuda, else where nvcc of /usr/bin points. Empty
/// when there is none.
std::filesystem::path find_toolkit();

/// One nvcc run: host code without the CUDA runtime for the planner (the artifact), and beside it, in the same folder,
/// the device code that alone will run: `submission.cubin`, with `submission.ptx` to read. `arch` is "sm_90a".
/// Error(machine) when there is no nvcc.
BuildResult build(const Submission& submission, const std::string& arch, sandbox::Level level,
                  const DeckLimits& limits);

}  // namespace kbh::sealed
