// The system-call filters: allow-lists, built with libseccomp.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "sandbox/sandbox.hpp"

namespace kbh::sandbox::seccomp {

/// The BPF program that holds from the start of the program on: still allows exec, and a tighter filter.
const std::vector<sock_filter>& launch_program(Profile profile);

/// Loads the tight filter into this process, all threads. Aborts when the kernel refuses.
void load(Profile profile);

}  // namespace kbh::sandbox::seccomp
