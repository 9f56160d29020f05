// Level full: which bubblewrap, and its options.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace kbh::sandbox::bubblewrap {

/// $KBH_BWRAP, else bwrap or libexec/bwrap beside this executable, else the one in PATH; empty when there is none.
std::filesystem::path find();

/// Folders and files of the system that every program may read.
std::vector<std::filesystem::path> system_paths();

/// Descriptors that bubblewrap itself reads or writes.
struct Descriptors {
  int seccomp = -1;
  int info = -1;
};

/// Everything but the program's own argument vector. `sources` are the paths to bind for spec.read_only followed by
/// spec.writable.
std::vector<std::string> options(const Spec& spec, const std::vector<std::filesystem::path>& sources,
                                 const Descriptors& descriptors);

}  // namespace kbh::sandbox::bubblewrap
