// The proof that a problem's cases bite: every mutant against every case, with the real oracle and the real comparison.
#pragma once

#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace kbh {

enum class MutantOutcome { passed, killed, not_applicable };

struct LintReport {
  std::vector<std::string> cases;  // the last is "neighbours": nominal data on the neighbours of the shapes
  std::vector<std::string> mutants;
  std::vector<std::vector<MutantOutcome>> matrix;  // [mutant][case]
  std::vector<double> honest_worst;                // [case]: the honest answer's largest error / bound
  std::vector<std::string> faults;  // broken claims, survivors, idle cases, an honest answer refused; empty when sound
};

/// Runs on the given shapes (a case counts as a kill when it kills on any of them; a claim must hold on every shape
/// where the case and the mutant apply), and nominal data on their neighbours. Also required:
///   * the honest answer passes everywhere, outputs of zeros pass nowhere;
///   * every mutant that applies is killed somewhere, every case kills something;
///   * at least half of the mutants are right on nominal data of the first shape, else they prove little;
///   * a case draws the same data again for the same key, and other data for another seed.
LintReport lint_problem(const Problem& problem, const std::vector<Shape>& shapes, const Seed& seed);

/// The matrix as text, with the faults below it.
std::string lint_text(const LintReport& report);

}  // namespace kbh
