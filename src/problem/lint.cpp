#include "problem/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.hpp"
#include "base/parallel.hpp"

namespace kbh {
namespace {

constexpr std::string_view kNeighbours = "neighbours";
constexpr std::byte kPoison{0xab};

/// Tensors of one kind (inputs with state, or outputs) that own their memory.
class Buffers {
 public:
  Buffers(const std::vector<TensorSpec>& specs, bool outputs, std::byte fill) {
    for (const TensorSpec& spec : specs)
      if ((spec.role == Role::output) == outputs) specs_.push_back(spec);
    for (const TensorSpec& spec : specs_) bytes_.emplace_back(spec.bytes(), fill);
  }

  [[nodiscard]] std::vector<TensorView> views() {
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < specs_.size(); ++i) views.push_back({&specs_[i], bytes_[i].data()});
    return views;
  }

  [[nodiscard]] std::vector<ConstTensorView> const_views() const {
    std::vector<ConstTensorView> views;
    for (std::size_t i = 0; i < specs_.size(); ++i) views.emplace_back(&specs_[i], bytes_[i].data());
    return views;
  }

  [[nodiscard]] const std::vector<std::vector<std::byte>>& bytes() const { return bytes_; }

 private:
  std::vector<TensorSpec> specs_;
  std::vector<std::vector<std::byte>> bytes_;
};

/// Two calls of one case on one shape: the data of both, and the oracle's answer to the second, which is judged.
struct Calls {
  const Shape& shape;
  const std::vector<TensorSpec> specs;
  Buffers former;
  Buffers judged;
  Expected expected;
};

class Lint {
 public:
  Lint(const Problem& problem, Seed seed) : problem_(problem), seed_(std::move(seed)) {
    for (const Case& c : problem.cases) report_.cases.push_back(c.name);
    report_.cases.emplace_back(kNeighbours);
    for (const Mutant& m : problem.mutants) report_.mutants.push_back(m.name);
    report_.matrix.assign(report_.mutants.size(),
                          std::vector<MutantOutcome>(report_.cases.size(), MutantOutcome::not_applicable));
  }

  LintReport run(const std::vector<Shape>& shapes) {
    check_names();
    for (const Shape& shape : shapes) {
      for (std::size_t c = 0; c < problem_.cases.size(); ++c) run_case(c, problem_.cases[c], shape, true);
      for (const Shape& beside : problem_.neighbours(shape))
        run_case(problem_.cases.size(), problem_.nominal(), beside, false);
    }
    check_mutants();
    check_cases();
    if (!shapes.empty()) check_right_on_nominal(shapes.front());
    return std::move(report_);
  }

 private:
  template <typename... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    report_.faults.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check_names() {
    std::set<std::string> mutants;
    for (const Mutant& m : problem_.mutants)
      if (!mutants.insert(m.name).second) fault("two mutants are called {}", m.name);
    std::set<std::string> cases;
    for (const Case& c : problem_.cases) {
      if (!cases.insert(c.name).second) fault("two cases are called {}", c.name);
      for (const std::string& name : c.kills)
        if (!mutants.contains(name)) fault("case {} claims to kill {}, which is no mutant", c.name, name);
    }
    const auto nominal = [](const Case& c) { return c.nominal; };
    if (std::count_if(problem_.cases.begin(), problem_.cases.end(), nominal) != 1)
      fault("exactly one case must be nominal");
  }

  [[nodiscard]] DrawKey key(const Case& c, const Shape& shape, int trial) const {
    return {seed_, problem_.id, problem_.version, shape, c.name, trial};
  }

  [[nodiscard]] Calls draw(const Case& c, const Shape& shape) {
    const std::vector<TensorSpec> specs = problem_.tensors(shape);
    Calls calls{shape, specs, {specs, false, kPoison}, {specs, false, kPoison}, {}};
    c.fill(key(c, shape, 0), calls.former.views());
    if (c.kind == CaseKind::in_place) {
      calls.judged = calls.former;
      c.change(key(c, shape, 0), calls.judged.views());
    } else {
      c.fill(key(c, shape, 1), calls.judged.views());
    }
    calls.expected = problem_.oracle(shape, calls.judged.const_views());
    check_draws(c, calls);
    return calls;
  }

  void check_draws(const Case& c, const Calls& calls) {
    Buffers again(calls.specs, false, std::byte{0});
    c.fill(key(c, calls.shape, 0), again.views());
    if (again.bytes() != calls.former.bytes()) fault("case {} on {}: one key, two draws", c.name, calls.shape.text());
    if (calls.judged.bytes() == calls.former.bytes())
      fault("case {} on {}: two draws with the same data", c.name, calls.shape.text());
  }

  /// What the comparison says about the second answer of `answer`.
  [[nodiscard]] Comparison judge(const Calls& calls, const Answer& answer) const {
    Buffers former(calls.specs, true, kPoison);
    answer(calls.shape, calls.former.const_views(), former.views(), {});
    Buffers judged(calls.specs, true, kPoison);
    answer(calls.shape, calls.judged.const_views(), judged.views(), former.bytes());
    return problem_.compare(calls.shape, calls.judged.const_views(), calls.expected, judged.const_views());
  }

  /// `claims`: whether what the case claims to kill must die here.
  void run_case(std::size_t column, const Case& c, const Shape& shape, bool claims) {
    if (c.applies && !c.applies(shape)) return;
    const Calls calls = draw(c, shape);
    const std::string where = fmt::format("case {} on {}", c.name, shape.text());
    if (const Comparison right = judge(calls, problem_.honest); !right.pass)
      fault("{}: the honest answer is refused ({})", where, right.mismatch ? right.mismatch->rule : "no reason given");
    const Buffers zeros(calls.specs, true, std::byte{0});
    if (problem_.compare(shape, calls.judged.const_views(), calls.expected, zeros.const_views()).pass)
      fault("{}: outputs of zeros pass", where);

    const std::vector<Mutant>& mutants = problem_.mutants;
    std::vector<MutantOutcome> outcomes(mutants.size(), MutantOutcome::not_applicable);
    parallel_for(mutants.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t m = begin; m < end; ++m)
        if (!mutants[m].applies || mutants[m].applies(shape))
          outcomes[m] = judge(calls, mutants[m].run).pass ? MutantOutcome::passed : MutantOutcome::killed;
    });
    for (std::size_t m = 0; m < mutants.size(); ++m) {
      record(report_.matrix[m][column], outcomes[m]);
      const bool claimed = std::find(c.kills.begin(), c.kills.end(), mutants[m].name) != c.kills.end();
      if (claims && claimed && outcomes[m] == MutantOutcome::passed)
        fault("{}: claims to kill {}, which passes", where, mutants[m].name);
    }
    if (c.nominal && nominal_of_first_shape_.empty()) nominal_of_first_shape_ = outcomes;
  }

  static void record(MutantOutcome& cell, MutantOutcome outcome) {
    if (cell == MutantOutcome::killed || outcome == MutantOutcome::not_applicable) return;
    cell = outcome;
  }

  /// A mutant that applies to neighbours alone is none of these shapes' business.
  void check_mutants() {
    for (std::size_t m = 0; m < report_.mutants.size(); ++m) {
      const auto& row = report_.matrix[m];
      const bool killed = std::find(row.begin(), row.end(), MutantOutcome::killed) != row.end();
      const bool passed = std::find(row.begin(), row.end() - 1, MutantOutcome::passed) != row.end() - 1;
      if (passed && !killed) fault("mutant {} survives every case", report_.mutants[m]);
    }
  }

  void check_cases() {
    for (std::size_t c = 0; c < report_.cases.size(); ++c) {
      const auto outcome = [&](MutantOutcome o) {
        return std::any_of(report_.matrix.begin(), report_.matrix.end(), [&](const auto& row) { return row[c] == o; });
      };
      if (outcome(MutantOutcome::passed) && !outcome(MutantOutcome::killed))
        fault("case {} kills nothing", report_.cases[c]);
    }
  }

  void check_right_on_nominal(const Shape& shape) {
    const auto count = [&](MutantOutcome o) {
      return std::count(nominal_of_first_shape_.begin(), nominal_of_first_shape_.end(), o);
    };
    const auto right = count(MutantOutcome::passed);
    const auto wrong = count(MutantOutcome::killed);
    if (right < wrong)
      fault("only {} of {} mutants are right on nominal data of {}: expected at least half", right, right + wrong,
            shape.text());
  }

  const Problem& problem_;
  const Seed seed_;
  LintReport report_;
  std::vector<MutantOutcome> nominal_of_first_shape_;
};

char letter(MutantOutcome outcome) {
  switch (outcome) {
    case MutantOutcome::killed:
      return 'X';
    case MutantOutcome::passed:
      return '.';
    case MutantOutcome::not_applicable:
      return ' ';
  }
  return '?';
}

}  // namespace

LintReport lint_problem(const Problem& problem, const std::vector<Shape>& shapes, const Seed& seed) {
  return Lint(problem, seed).run(shapes);
}

std::string lint_text(const LintReport& report) {
  std::size_t width = 0;
  for (const std::string& name : report.mutants) width = std::max(width, name.size());

  std::string text;
  for (std::size_t c = 0; c < report.cases.size(); ++c) text += fmt::format("{:3} {}\n", c + 1, report.cases[c]);
  text += fmt::format("\n{:{}}", "", width + 2);
  for (std::size_t c = 0; c < report.cases.size(); ++c) text += fmt::format("{:3}", c + 1);
  text += '\n';
  for (std::size_t m = 0; m < report.mutants.size(); ++m) {
    text += fmt::format("{:{}}  ", report.mutants[m], width);
    for (const MutantOutcome outcome : report.matrix[m]) text += fmt::format("  {}", letter(outcome));
    text += '\n';
  }
  text += "\nX killed, . right or not seen, blank: does not apply\n";
  for (const std::string& fault : report.faults) text += fmt::format("fault: {}\n", fault);
  if (report.faults.empty()) text += "no faults\n";
  return text;
}

}  // namespace kbh
