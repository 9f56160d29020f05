// Landlock: a process gives up access to files, TCP ports, signals and abstract sockets, for itself and its children.
#pragma once

#include <filesystem>
#include <vector>

#include "base/fd.hpp"

namespace kbh::sandbox::landlock {

/// Version of the kernel's interface; 0 when it has none.
int abi();

/// Ruleset under which only these trees can be read and executed, or read and written; paths that do not exist are
/// passed over. No TCP (ABI 4), no signals to and no abstract sockets of processes outside (ABI 6). Error(internal) on
/// failure.
UniqueFd files(const std::vector<std::filesystem::path>& read_only, const std::vector<std::filesystem::path>& devices,
               const std::vector<std::filesystem::path>& writable);

/// Ruleset that leaves files alone. Being in any Landlock domain already closes ptrace, and with it /proc/PID/mem and
/// environ, of every process outside that domain.
UniqueFd isolation();

/// System calls only, for use between fork and exec. 0, or -1 with errno. `allow_own_proc` adds /proc/self to the
/// ruleset; the process keeps its number, so this outlasts exec.
int allow_own_proc(int ruleset);
int restrict(int ruleset);

}  // namespace kbh::sandbox::landlock
