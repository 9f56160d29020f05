#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "grade/pipeline.hpp"

namespace kbh::cli {

/// The options of grade, check and bench.
struct GradeArguments {
  Mode mode = Mode::grade;
  std::vector<std::string> submissions;
  std::string problem;
  std::string deck;  // empty: of the device found for sealed submissions, else cpu
  int device = 0;
  std::string lane;
  std::string store;
  std::string seed;
  std::string sandbox;
  bool no_sandbox = false;
  bool dry_run = false;
  bool json = false;
  bool quiet = false;
  int shape = -1;
  std::vector<std::string> cases;
  bool quick = false;
  std::string watch;
  int watch_runs = 0;
};

/// --problem, else the problem whose id is part of the path. Error(usage) when neither says.
const Problem& problem_of(const GradeArguments& arguments, const std::filesystem::path& submission);
/// Error(machine) when nothing can be graded on the deck here: no runner, no such GPU.
void require_runner(const Deck& deck, int device);
/// The sandbox level asked for or the best there is. Error(machine) when there is none.
sandbox::Level level_of(const GradeArguments& arguments);

}  // namespace kbh::cli
