// One call of a submission, from fresh data to a verdict on its outputs. Used by check and time alike, so that what is
// timed is judged by the same code as what is checked.
#pragma once

#include "grade/types.hpp"
#include "lane/session.hpp"

namespace kbh {

/// The views of one slot that oracle and compare take.
struct SlotData {
  std::vector<ConstTensorView> tensors;
  std::vector<ConstTensorView> outputs;
};
SlotData data_of(const Session& session, int slot);

/// Of the views that Case::fill takes, those of state, which come first.
std::span<const TensorView> state_of(std::span<const TensorView> tensors);

/// Compares the outputs of a stopped worker's slot with the oracle's answer to its inputs.
Comparison compare_slot(const Problem& problem, const Shape& shape, const Case& of, const Session& session, int slot,
                        const Expected& expected);

/// A worker's failure as a finding of a stage, with where it happened.
Finding finding_of(const Failure& failure, Stage stage, const std::string& where);

/// A wrong output as a finding, in words a submitter can act on.
Finding wrong_output(Stage stage, const std::string& where, const Comparison& comparison, const Problem& problem);

/// Bytes around an output were overwritten: a finding, else nothing.
std::optional<Finding> check_canaries(const Session& session, int slot, Stage stage, const std::string& where);

/// The whole grade has a limit too (deck, grade_seconds).
std::optional<Finding> check_deadline(const GradeContext& context, Stage stage);

/// Lets the worker run on for 5 ms after its call: outputs must not change and no thread may go on working.
std::optional<Finding> check_stillness(Session& session, int slot, Stage stage, const std::string& where);

}  // namespace kbh
