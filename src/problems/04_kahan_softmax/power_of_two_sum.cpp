#include "problems/04_kahan_softmax/power_of_two_sum.hpp"

#include <bit>
#include <cmath>

namespace kbh::softmax {

PowerOfTwoSum power_of_two_sum(const Rows& rows, const Design& design, std::uint32_t first_kind, float shift) {
  constexpr double kPart[4] = {0.98, 0.94, 0.75, 0.60};
  const std::uint32_t n = std::bit_floor(rows.vocab >> design.density_shift);
  PowerOfTwoSum draw{rows, n - 1, first_kind, {}, {}, shift};
  for (int kind = 0; kind < 4; ++kind) {
    draw.small[kind] = static_cast<float>(std::log(kPart[kind] * std::ldexp(0x1p-24, -design.below)));
    const double term = std::exp(static_cast<double>(draw.small[kind]));  // of the logit as it is after rounding
    draw.balance[kind] = static_cast<float>(std::log1p(-static_cast<double>(rows.vocab - n) * term));
  }
  return draw;
}

bool fits(const Design& design, std::int64_t vocab) { return (vocab >> design.density_shift) >= 16; }

}  // namespace kbh::softmax
