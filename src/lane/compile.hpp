// Compiling a submission inside the sandbox, with a cache by content: what the lanes' builders share.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "lane/submission.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh {

struct BuildResult {
  bool ok = false;
  bool cached = false;
  bool timed_out = false;
  std::filesystem::path artifact;  // the shared object, valid when ok; lies in the artifact cache
  std::string artifact_sha256;
  std::string compiler;  // "g++ (Debian 12.2.0-14) 12.2.0"
  std::string command;   // as run inside the sandbox
  std::string log;       // the compiler's words, paths as the submitter knows them
  double seconds = 0;
};

/// What a lane's builder asks for.
struct Compilation {
  std::string lane;                   // of the cache key, with a number that rises when this file's meaning changes
  std::string compiler;               // absolute path
  std::vector<std::string> flags;     // before the source
  std::vector<std::string> products;  // files of the output folder that are kept; the first is the artifact
  std::string machine;                // what else the result depends on
  std::vector<std::filesystem::path> toolkit;  // further folders that the compiler must see, absolute
  /// Flags that name the output folder as the compiler sees it.
  std::function<std::vector<std::string>(const std::filesystem::path& output)> output_flags;
  std::int64_t memory_bytes = std::int64_t{4} << 30;
};

/// Runs the compiler, which sees /usr, the toolkit, the submission and include/kbh. Error(machine) when it does not
/// start.
BuildResult compile(const Submission& submission, const Compilation& what, sandbox::Level level,
                    const DeckLimits& limits);

}  // namespace kbh
