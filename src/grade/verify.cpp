#include "grade/verify.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace kbh {
namespace {

constexpr double kLingerSeconds = 0.005;
// Seen running once may be a pool on its way to sleep: the second look is longer, and a thread must be seen running at
// (nearly) every moment of it.
constexpr double kSecondLookSeconds = 0.05;
constexpr int kSecondLooks = 10;
constexpr double kBusyShare = 0.8;

}  // namespace

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
  const int slots[] = {slot};
  const std::uint64_t before = session.outputs_fingerprint(slots);
  const double running = session.linger(kLingerSeconds, 1);
  const bool changed = session.outputs_fingerprint(slots) != before;
  Finding finding;
  finding.verdict = Verdict::rejected;
  finding.stage = stage;
  finding.details = {"at " + where};
  if (changed) {
    finding.what = "an output changed after kbh_run had returned";
    finding.next = "join or await every thread that writes before returning";
    return finding;
  }
  if (running == 0 || session.linger(kSecondLookSeconds, kSecondLooks) < kBusyShare) return std::nullopt;
  finding.what = fmt::format("a thread went on working after kbh_run had returned (seen running for {:.0f} ms)",
                             kSecondLookSeconds * 1e3);
  finding.next = "threads may outlive a call only asleep (a condition variable, not a spinning loop)";
  return finding;
}

}  // namespace kbh
