// The proof that a problem's cases bite: every mutant against every case, with the real oracle and the real comparison.
#pragma once

#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace kbh {

enum class MutantOutcome { passed, killed, not_applicable };

struct LintReport {
  std::vector<std::string> cases;
  std::vector<std::string> mutants;
  std::vector<std::vector<MutantOutcome>> matrix;  // [mutant][case]
  std::vector<std::string> faults;  // broken claims, survivors, idle cases, an honest answer refused; empty when sound
};

/// Runs on the given shapes (a case counts as a kill when it kills on any of them; a claim must hold on every shape
/// where the case applies).
LintReport lint_problem(const Problem& problem, const std::vector<Shape>& shapes, const Seed& seed);

/// The matrix as text, with the faults below it.
std::string lint_text(const LintReport& report);

}  // namespace kbh
