#include "grade/timed_slots.hpp"

#include "grade/verify.hpp"

namespace kbh {
namespace {

// Trials of the check stage stay far below.
constexpr int kStateTrial = 900'000;
constexpr int kFirstTrial = 1'000'000;

}  // namespace

DrawKey TimedSlots::key(int trial) const {
  const Problem& problem = context_.problem;
  return {seed_, problem.id, problem.version, shape_, problem.nominal().name, trial};
}

std::optional<Finding> TimedSlots::open(int slots, int states) {
  const Problem& problem = context_.problem;
  expected_.assign(static_cast<std::size_t>(slots), {});
  const int sets = problem.has_state() ? states : 1;
  const auto failure = session_.open_shape(shape_, problem.tensors(shape_), slots, sets, [&](int i, auto state) {
    if (problem.has_state()) problem.nominal().fill_state(key(kStateTrial + i), state);
  });
  if (failure) return finding_of(*failure, Stage::time, shape_.text());
  return std::nullopt;
}

void TimedSlots::fill(int slot) {
  const Problem& problem = context_.problem;
  const std::span<const TensorView> tensors = session_.slot(slot).tensors;
  Expected& expected = expected_[static_cast<std::size_t>(slot)];
  if (problem.refresh && !expected.outputs.empty()) {
    problem.refresh(key(kFirstTrial + draws_++), tensors, expected);
  } else {
    problem.nominal().fill(key(kFirstTrial + draws_++), tensors);
    expected = problem.oracle(shape_, data_of(session_, slot).tensors);
  }
  session_.poison(slot);
}

std::optional<Finding> TimedSlots::verify(int slot) const {
  if (auto overrun = check_canaries(session_, slot, Stage::time, where())) return overrun;
  const Comparison comparison = compare_slot(context_.problem, shape_, context_.problem.nominal(), session_, slot,
                                             expected_[static_cast<std::size_t>(slot)]);
  if (comparison.pass) return std::nullopt;
  return wrong_output(Stage::time, where(), comparison, context_.problem);
}

}  // namespace kbh
