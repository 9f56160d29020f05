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
constexpr double kLeastMargin = 2;  // of a claimed kill: error / bound

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

/// The calls of one case on one shape, in turn, and what the oracle says about them. Cases of single calls get a former
/// call with another draw: who answers with what was right before is seen.
struct Calls {
  const Case& of;
  const Shape& shape;
  std::vector<TensorSpec> specs;
  std::vector<Buffers> given;      // state and inputs, per call
  std::vector<Expected> expected;  // empty for a call that is not judged
  std::size_t first_judged = 1;
};

/// What became of an answer: the comparison of the first call that failed, else of the last.
struct Judgement {
  Comparison comparison;
  double worst = 0;  // over all judged calls
};

class Lint {
 public:
  Lint(const Problem& problem, Seed seed) : problem_(problem), seed_(std::move(seed)) {
    for (const Case& c : problem.cases) report_.cases.push_back(c.name);
    report_.cases.emplace_back(kNeighbours);
    for (const Mutant& m : problem.mutants) report_.mutants.push_back(m.name);
    report_.honest_worst.assign(report_.cases.size(), 0);
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
      for (const auto* names : {&c.kills, &c.barely_kills})
        for (const std::string& name : *names)
          if (!mutants.contains(name)) fault("case {} claims to kill {}, which is no mutant", c.name, name);
      if (static_cast<bool>(c.fill_state) != problem_.has_state())
        fault("case {} has {} fill_state", c.name, c.fill_state ? "a" : "no");
      if (c.kind == CaseKind::two_states && !c.fill_state) fault("case {}: two states of a problem without", c.name);
      if ((c.kind == CaseKind::repeated) != static_cast<bool>(c.change) || c.calls < 2)
        fault("case {}: repeated calls need a change, and nothing else does", c.name);
    }
    const auto nominal = [](const Case& c) { return c.nominal; };
    if (std::count_if(problem_.cases.begin(), problem_.cases.end(), nominal) != 1)
      fault("exactly one case must be nominal");
  }

  [[nodiscard]] DrawKey key(const Case& c, const Shape& shape, int trial) const {
    return {seed_, problem_.id, problem_.version, shape, c.name, trial};
  }

  /// The views of state and of everything, in the order of the specs (state first).
  void fill(const Case& c, const Shape& shape, int trial, Buffers& buffers) const {
    const std::vector<TensorView> views = buffers.views();
    const auto is_state = [](const TensorView& v) { return v.spec->role == Role::state; };
    const auto states = static_cast<std::size_t>(std::count_if(views.begin(), views.end(), is_state));
    if (c.fill_state) c.fill_state(key(c, shape, trial), std::span(views).first(states));
    c.fill(key(c, shape, trial), views);
  }

  [[nodiscard]] Calls draw(const Case& c, const Shape& shape) {
    const std::vector<TensorSpec> specs = problem_.tensors(shape);
    Calls calls{c, shape, specs, {}, {}};
    const int count = c.kind == CaseKind::repeated ? c.calls : 2;
    for (int i = 0; i < count; ++i) {
      if (c.kind == CaseKind::repeated && i > 0) {
        calls.given.push_back(calls.given.back());
        if (calls.expected.back().outputs.empty())
          calls.expected.back() = problem_.oracle(shape, calls.given[static_cast<std::size_t>(i) - 1].const_views());
        c.change(key(c, shape, 0), i, calls.given.back().views(), calls.expected.back());
      } else {
        calls.given.emplace_back(specs, false, kPoison);
        fill(c, shape, i, calls.given.back());
      }
      calls.expected.emplace_back();
      if (i > 0) calls.expected.back() = problem_.oracle(shape, calls.given.back().const_views());
    }
    check_draws(c, calls);
    return calls;
  }

  void check_draws(const Case& c, const Calls& calls) {
    Buffers again(calls.specs, false, std::byte{0});
    fill(c, calls.shape, 0, again);
    if (again.bytes() != calls.given[0].bytes()) fault("case {} on {}: one key, two draws", c.name, calls.shape.text());
    if (calls.given[1].bytes() == calls.given[0].bytes())
      fault("case {} on {}: two draws with the same data", c.name, calls.shape.text());
  }

  [[nodiscard]] Comparison compare(const Calls& calls, std::size_t call, const Buffers& outputs) const {
    return problem_.compare(calls.shape, calls.of, calls.given[call].const_views(), calls.expected[call],
                            outputs.const_views());
  }

  [[nodiscard]] Judgement judge(const Calls& calls, const Answer& answer) const {
    Judgement judgement;
    std::vector<std::vector<std::byte>> former;
    for (std::size_t i = 0; i < calls.given.size(); ++i) {
      Buffers outputs(calls.specs, true, kPoison);
      answer(calls.shape, calls.given[i].const_views(), outputs.views(), former);
      former = outputs.bytes();
      if (i < calls.first_judged) continue;
      judgement.comparison = compare(calls, i, outputs);
      judgement.worst = std::max(judgement.worst, judgement.comparison.worst);
      if (!judgement.comparison.pass) break;
    }
    return judgement;
  }

  /// `claims`: whether what the case claims to kill must die here.
  void run_case(std::size_t column, const Case& c, const Shape& shape, bool claims) {
    if (c.applies && !c.applies(shape)) return;
    const Calls calls = draw(c, shape);
    const std::string where = fmt::format("case {} on {}", c.name, shape.text());
    const Judgement right = judge(calls, problem_.honest);
    report_.honest_worst[column] = std::max(report_.honest_worst[column], right.worst);
    if (!right.comparison.pass)
      fault("{}: the honest answer is refused ({})", where,
            right.comparison.mismatch ? right.comparison.mismatch->rule : "no reason given");
    const Buffers zeros(calls.specs, true, std::byte{0});
    for (std::size_t i = calls.first_judged; i < calls.given.size(); ++i)
      if (compare(calls, i, zeros).pass) fault("{}: outputs of zeros pass", where);

    const std::vector<Mutant>& mutants = problem_.mutants;
    std::vector<MutantOutcome> outcomes(mutants.size(), MutantOutcome::not_applicable);
    std::vector<double> margins(mutants.size());
    parallel_for(mutants.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t m = begin; m < end; ++m) {
        if (mutants[m].applies && !mutants[m].applies(shape)) continue;
        const Judgement judgement = judge(calls, mutants[m].run);
        outcomes[m] = judgement.comparison.pass ? MutantOutcome::passed : MutantOutcome::killed;
        margins[m] = judgement.worst;
      }
    });
    for (std::size_t m = 0; m < mutants.size(); ++m) {
      record(report_.matrix[m][column], outcomes[m]);
      if (!claims || outcomes[m] == MutantOutcome::not_applicable) continue;
      const bool kills = std::find(c.kills.begin(), c.kills.end(), mutants[m].name) != c.kills.end();
      const bool barely =
          std::find(c.barely_kills.begin(), c.barely_kills.end(), mutants[m].name) != c.barely_kills.end();
      if ((kills || barely) && outcomes[m] == MutantOutcome::passed)
        fault("{}: claims to kill {}, which passes", where, mutants[m].name);
      else if (kills && margins[m] < kLeastMargin)
        fault("{}: kills {} by a factor of {:.2f} only, expected {} (or list it in barely_kills)", where,
              mutants[m].name, margins[m], kLeastMargin);
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
  text += fmt::format("{:{}}", "honest: error / bound, %", width + 2);
  for (const double worst : report.honest_worst) text += fmt::format("{:3.0f}", 100 * std::min(worst, 9.99));
  text += "\n\nX killed, . right or not seen, blank: does not apply\n";
  for (const std::string& fault : report.faults) text += fmt::format("fault: {}\n", fault);
  if (report.faults.empty()) text += "no faults\n";
  return text;
}

}  // namespace kbh
