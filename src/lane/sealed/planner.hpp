// Runs a submission's plan function in a sandboxed process (src/planner), before any data exists.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "lane/sealed/plan.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh::sealed {

struct Planning {
  std::vector<Plan> plans;  // one per shape, in order; ends with the first that was refused
  std::string problem;      // why there are none: it crashed, took too long, wrote no plan; empty when all is well
  bool timed_out = false;
  std::string log;  // what it printed
};

/// Error(machine) when the sandbox does not start.
Planning plan(const std::filesystem::path& object, const std::vector<Shape>& shapes, sandbox::Level level,
              const DeckLimits& limits);

}  // namespace kbh::sealed
