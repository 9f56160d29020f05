// The grader's end of one worker, whatever the lane and the device: memory of the slots, calls on them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace kbh {

/// What ended a worker, or made it unusable. Data, not an exception: it is the submission's doing until shown
/// otherwise.
struct Failure {
  enum class Kind { crashed, timed_out, rejected, infra } kind = Kind::crashed;
  std::string what;  // one sentence
  std::string next;  // what the submitter can do
  std::vector<std::string> details;
};

/// Buffers of one slot of the open shape, ours to write between calls.
struct SlotMemory {
  std::vector<TensorView> tensors;  // state, then inputs: what Case::fill takes
  std::vector<TensorView> outputs;
};

/// Draws the state of a number: (index, state tensors).
using FillState = std::function<void(int, std::span<const TensorView>)>;

class Session {
 public:
  virtual ~Session() = default;

  /// Loads the artifact.
  virtual std::optional<Failure> load() = 0;

  /// New memory for `slots` slots over `states` sets of state, poisoned, and whatever the submission makes of a state.
  /// Closes the shape that was open.
  virtual std::optional<Failure> open_shape(const Shape& shape, const std::vector<TensorSpec>& tensors, int slots,
                                            int states, const FillState& fill_state) = 0;

  [[nodiscard]] virtual const SlotMemory& slot(int index) const = 0;

  /// The number of the state that a slot's calls use: slots take turns.
  [[nodiscard]] virtual int state_of(int slot) const = 0;

  /// Makes what the submission keeps of one state anew, after the caller has filled that state with other data.
  virtual std::optional<Failure> recreate(int state) = 0;

  /// Fills the outputs of a slot with a pattern that no right answer holds, and renews its canaries.
  virtual void poison(int slot) = 0;

  /// Calls the submission on a slot; its outputs can be read when this returns.
  virtual std::optional<Failure> run(int slot) = 0;

  /// Empty when the bytes around the outputs of a slot are untouched, else which buffer was overrun.
  [[nodiscard]] virtual std::string overrun(int slot) const = 0;

  /// Lets the worker go on for a moment after a call. Nothing when its outputs stay as they are and it rests, else what
  /// it does.
  virtual std::optional<Failure> restless(int slot) = 0;

  /// What the submission printed (at most limits.log_kib), and whether more was dropped.
  [[nodiscard]] virtual std::string log() const = 0;
  [[nodiscard]] virtual bool log_truncated() const = 0;
};

}  // namespace kbh
