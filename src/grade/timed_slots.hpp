// The slots of a shape that is being timed: fresh data before each call, a comparison of every output after it.
#pragma once

#include <vector>

#include "grade/types.hpp"
#include "lane/session.hpp"

namespace kbh {

class TimedSlots {
 public:
  TimedSlots(const GradeContext& context, const Seed& seed, Session& session, const Shape& shape)
      : context_(context), seed_(seed), session_(session), shape_(shape) {}

  /// Opens the shape with `slots` slots that take turns in `states` sets of state (one for problems without state).
  std::optional<Finding> open(int slots, int states);

  /// New content. Where the oracle is dear, a slot that has been drawn once changes in a few secret rows only.
  void fill(int slot);

  /// Compares a slot's outputs, and looks at what lies around them.
  std::optional<Finding> verify(int slot) const;

  /// "a timed call of ...", for findings.
  [[nodiscard]] std::string where() const { return "a timed call of " + shape_.text(); }

 private:
  [[nodiscard]] DrawKey key(int trial) const;

  const GradeContext& context_;
  const Seed& seed_;
  Session& session_;
  Shape shape_;
  int draws_ = 0;
  std::vector<Expected> expected_;  // per slot, of what it holds
};

}  // namespace kbh
