// Calls a kernel written for the host lane (include/kbh/host.h) inside this process: how lint runs the wrong kernels
// that also stand as submissions under redteam/mutants.
#pragma once

#include <kbh/host.h>

#include <functional>

#include "problem/problem.hpp"

namespace kbh {

/// A kernel in the words of the host lane, with its state beside its inputs: no object is made beforehand.
using HostKernel = std::function<void(const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs)>;

Answer host_answer(HostKernel kernel);

}  // namespace kbh
