// Running the built binaries and looking at what they print.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/json.hpp"

namespace kbh::test {

struct CommandResult {
  int exit_code = -1;  // 128 + n when killed by signal n
  std::string out;
  std::string err;
};

struct CommandOptions {
  std::map<std::string, std::string> environment;  // on top of ours
  fs::path directory;                              // empty: ours
};

/// Runs a program and waits for it.
CommandResult run_command(const std::vector<std::string>& argv, const CommandOptions& options = {});

/// build/kbh with arguments.
CommandResult kbh(std::vector<std::string> arguments, const CommandOptions& options = {});

/// The records of a store, by id.
std::map<std::string, Json> records_of(const fs::path& store);

/// True when this machine offers the level (as `kbh doctor --json` says).
bool sandbox_offers(const std::string& level);

}  // namespace kbh::test
