#include "grade/verify.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace kbh {
SlotData data_of(const Session& session, int slot) {
  const SlotMemory& memory = session.slot(slot);
  return {{memory.tensors.begin(), memory.tensors.end()}, {memory.outputs.begin(), memory.outputs.end()}};
}

std::span<const TensorView> state_of(std::span<const TensorView> tensors) {
  const auto is_input = [](const TensorView& v) { return v.spec->role != Role::state; };
  const auto end = std::find_if(tensors.begin(), tensors.end(), is_input);
  return tensors.first(static_cast<std::size_t>(end - tensors.begin()));
}

Comparison compare_slot(const Problem& problem, const Shape& shape, const Case& of, const Session& session, int slot,
                        const Expected& expected) {
  const SlotData data = data_of(session, slot);
  return problem.compare(shape, of, data.tensors, expected, data.outputs);
}

Finding finding_of(const Failure& failure, Stage stage, const std::string& where) {
  Finding finding;
  finding.stage = stage;
  finding.what = failure.what;
  finding.next = failure.next;
  if (!where.empty()) finding.details.push_back("at " + where);
  finding.details.insert(finding.details.end(), failure.details.begin(), failure.details.end());
  switch (failure.kind) {
    case Failure::Kind::crashed:
      finding.verdict = Verdict::crashed;
      break;
    case Failure::Kind::timed_out:
      finding.verdict = Verdict::timed_out;
      break;
    case Failure::Kind::rejected:
      finding.verdict = Verdict::rejected;
      break;
    case Failure::Kind::infra:
      finding.verdict = Verdict::infra;
      break;
  }
  return finding;
}

Finding wrong_output(Stage stage, const std::string& where, const Comparison& comparison, const Problem& problem) {
  Finding finding;
  finding.verdict = Verdict::incorrect;
  finding.stage = stage;
  finding.what =
      fmt::format("wrong answer at {}: {} of {} elements are wrong", where, comparison.bad, comparison.total);
  if (const auto& m = comparison.mismatch) {
    finding.details.push_back(
        fmt::format("{}[{}]: got {}, expected {}", m->output, fmt::join(m->index, ", "), m->got, m->expected));
    finding.details.push_back("rule: " + m->rule);
  }
  finding.next = fmt::format(
      "`kbh problems {}` prints the domain and the rule; `kbh check` repeats this without timing", problem.id);
  return finding;
}

std::optional<Finding> check_canaries(const Session& session, int slot, Stage stage, const std::string& where) {
  const std::string output = session.overrun(slot);
  if (output.empty()) return std::nullopt;
  Finding finding;
  finding.verdict = Verdict::rejected;
  finding.stage = stage;
  finding.what = fmt::format("it wrote outside output `{}`: the bytes around the buffer changed", output);
  finding.details = {"at " + where};
  finding.next = "look at the last row and at sizes that are no multiple of your vector width";
  return finding;
}

std::optional<Finding> check_deadline(const GradeContext& context, Stage stage) {
  if (std::chrono::steady_clock::now() < context.deadline) return std::nullopt;
  Finding finding;
  finding.verdict = Verdict::timed_out;
  finding.stage = stage;
  finding.what = fmt::format("the whole grade took more than {:g} s", context.deck.limits.grade_seconds);
  finding.next = "make it faster; `kbh bench --shape N` times one shape";
  return finding;
}

std::optional<Finding> check_stillness(Session& session, int slot, Stage stage, const std::string& where) {
  const auto failure = session.restless(slot);
  if (!failure) return std::nullopt;
  return finding_of(*failure, stage, where);
}

}  // namespace kbh
