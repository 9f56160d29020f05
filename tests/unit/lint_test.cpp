#include "problem/lint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "problem/registry.hpp"

namespace kbh {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const Seed kSeed = "0123456789abcdef";

Shape shape(std::int64_t batch, std::int64_t n, std::int64_t k) { return {{{"batch", batch}, {"n", n}, {"k", k}}}; }

const std::vector<Shape> kTiny = {shape(4, 3000, 8)};

Mutant& mutant(Problem& problem, std::string_view name) {
  return *std::find_if(problem.mutants.begin(), problem.mutants.end(), [&](const Mutant& m) { return m.name == name; });
}

Case& find(Problem& problem, std::string_view name) {
  return *std::find_if(problem.cases.begin(), problem.cases.end(), [&](const Case& c) { return c.name == name; });
}

TEST(Lint, TopkIsSound) {
  // The public n and k with fewer rows, and a shape that divides by nothing.
  const LintReport report = lint_problem(
      find_problem("05_topk"), {shape(2, 8192, 8), shape(3, 4096, 1), shape(2, 12000, 16), shape(3, 1001, 7)}, kSeed);
  EXPECT_THAT(report.faults, IsEmpty()) << lint_text(report);
  // Every mutant applies on one of these shapes, so each has been killed.
  for (std::size_t m = 0; m < report.mutants.size(); ++m)
    EXPECT_THAT(report.matrix[m], Contains(MutantOutcome::killed)) << report.mutants[m];
}

// ---- planted faults: lint can fail
// ------------------------------------------------------------------------------------

std::vector<std::string> faults_of(const Problem& problem) { return lint_problem(problem, kTiny, kSeed).faults; }

TEST(Lint, AComparisonThatAcceptsEverythingIsFound) {
  Problem problem = find_problem("05_topk");
  problem.compare = [](const auto&, const auto&, auto, const auto&, auto) { return Comparison{.pass = true}; };
  const std::vector<std::string> faults = faults_of(problem);
  EXPECT_THAT(faults, Contains(HasSubstr("outputs of zeros pass")));
  EXPECT_THAT(faults, Contains("mutant one_wrong survives every case"));
  EXPECT_THAT(faults, Contains("case uniform kills nothing"));
  EXPECT_THAT(faults, Contains(HasSubstr("case nominal on batch=4 n=3000 k=8: claims to kill stale, which passes")));
}

TEST(Lint, AComparisonThatRefusesEverythingIsFound) {
  Problem problem = find_problem("05_topk");
  problem.compare = [](const auto&, const auto&, auto, const auto&, auto) { return Comparison{}; };
  const std::vector<std::string> faults = faults_of(problem);
  EXPECT_THAT(faults, Contains(HasSubstr("the honest answer is refused")));
  EXPECT_THAT(faults, Contains(HasSubstr("are right on nominal data of batch=4 n=3000 k=8: expected at least half")));
}

TEST(Lint, AComparisonThatForgetsDuplicatesIsFound) {
  Problem problem = find_problem("05_topk");
  const auto compare = problem.compare;
  problem.compare = [compare](const Shape& s, const Case& of, auto inputs, const Expected& expected, auto outputs) {
    Comparison c = compare(s, of, inputs, expected, outputs);
    if (c.mismatch && c.mismatch->rule == "each index stands at most once in a row") c.pass = true;
    return c;
  };
  EXPECT_THAT(faults_of(problem),
              Contains("case all_equal on batch=4 n=3000 k=8: claims to kill index_by_value, which passes"));
}

TEST(Lint, AWrongOracleIsFound) {
  Problem problem = find_problem("05_topk");
  const auto oracle = problem.oracle;
  problem.oracle = [oracle](const Shape& s, auto inputs) {
    Expected expected = oracle(s, inputs);
    expected.outputs[0].back() += 1;
    return expected;
  };
  EXPECT_THAT(faults_of(problem), Contains(HasSubstr("the honest answer is refused")));
}

TEST(Lint, WrongNamesAreFound) {
  Problem problem = find_problem("05_topk");
  find(problem, "denormals").kills = {"stale", "no_such_mutant"};
  find(problem, "uniform").name = "narrow";
  const std::vector<std::string> faults = faults_of(problem);
  EXPECT_THAT(faults, Contains("case denormals claims to kill no_such_mutant, which is no mutant"));
  EXPECT_THAT(faults, Contains("two cases are called narrow"));
}

TEST(Lint, AMutantThatIsRightIsFound) {
  Problem problem = find_problem("05_topk");
  mutant(problem, "checked_memo").run = problem.honest;
  const std::vector<std::string> faults = faults_of(problem);
  EXPECT_THAT(faults, Contains("mutant checked_memo survives every case"));
  EXPECT_THAT(faults, Contains(HasSubstr("claims to kill checked_memo, which passes")));
}

TEST(Lint, DataThatIgnoreTheSeedAreFound) {
  Problem problem = find_problem("05_topk");
  Case& c = find(problem, "heavy_tails");
  c.fill = [fill = c.fill](const DrawKey& key, std::span<const TensorView> tensors) {
    DrawKey fixed = key;
    fixed.trial = 0;
    fill(fixed, tensors);
  };
  EXPECT_THAT(faults_of(problem), Contains("case heavy_tails on batch=4 n=3000 k=8: two draws with the same data"));
}

TEST(Lint, DataThatCannotBeDrawnAgainAreFound) {
  Problem problem = find_problem("05_topk");
  Case& c = find(problem, "four_values");
  c.fill = [fill = c.fill, calls = std::make_shared<int>(0)](const DrawKey& key, std::span<const TensorView> tensors) {
    fill(key, tensors);
    tensors[0].as<float>()[0] = static_cast<float>((*calls)++);
  };
  EXPECT_THAT(faults_of(problem), Contains("case four_values on batch=4 n=3000 k=8: one key, two draws"));
}

TEST(Lint, TextShowsTheMatrixAndTheFaults) {
  LintReport report{{"nominal", "ties"}, {"zeros", "odd"}, {}, {0.25, 0.5}, {"something is wrong"}};
  report.matrix = {{MutantOutcome::killed, MutantOutcome::passed},
                   {MutantOutcome::not_applicable, MutantOutcome::killed}};
  const std::string text = lint_text(report);
  EXPECT_THAT(text, HasSubstr("  1 nominal\n  2 ties\n"));
  EXPECT_THAT(text, HasSubstr("zeros    X  ."));
  EXPECT_THAT(text, HasSubstr("odd         X"));
  EXPECT_THAT(text, HasSubstr("fault: something is wrong\n"));
}

}  // namespace
}  // namespace kbh
