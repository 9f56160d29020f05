#include "problem/compare.hpp"

#include <array>

#include "problems/08_lightning_attention/lightning.hpp"

namespace kbh::lightning {

Comparison compare(const Shape&, const Case& of, std::span<const ConstTensorView>, const Expected& expected,
                   std::span<const ConstTensorView> outputs) {
  const Bounds state{.a = kStateBound, .exact = of.bounds.exact};
  const OutputRule state_rule{
      .scale = expected.scales[kSNext],
      .words = "s_next: |error| <= 2^-22 (|decay s| + |k v|), twice what two fp32 roundings can cost",
  };
  const OutputRule read_rule{
      .scale = expected.scales[kO],
      .words = "o: |error| <= a |q| |column of s_next| / sqrt(128) + 2^-7 |o|, fp32 inside, rounded to bf16 once",
  };
  const std::array<Comparison, 2> both = {
      compare_output(outputs[kSNext], expected.outputs[kSNext], state, state_rule),
      compare_output(outputs[kO], expected.outputs[kO], of.bounds, read_rule),
  };
  return combined(both);
}

}  // namespace kbh::lightning
