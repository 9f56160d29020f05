#pragma once

#include <filesystem>
#include <string>

#include "deck/deck.hpp"
#include "lane/submission.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh::host {

struct BuildResult {
  bool ok = false;
  bool cached = false;
  bool timed_out = false;
  std::filesystem::path artifact;  // valid when ok; lies in the artifact cache
  std::string artifact_sha256;
  std::string compiler;  // "g++ (Debian 12.2.0-14) 12.2.0"
  std::string command;   // as run inside the sandbox
  std::string log;       // the compiler's words, paths as the submitter knows them
  double seconds = 0;
};

/// Compiles submission.cpp to a shared object inside the sandbox; the compiler sees /usr, the submission and
/// include/kbh. Results are cached by content of everything that goes in. Error(machine) when there is no compiler.
BuildResult build(const Submission& submission, sandbox::Level level, const DeckLimits& limits);

/// The system's C++ compiler: $KBH_CXX, else g++ or clang++ of /usr/bin. Empty when there is none.
std::string find_compiler();

}  // namespace kbh::host
