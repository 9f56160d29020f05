// Rows on which every plain fp32 summation order fails and every compensated or fp64 one passes.
#pragma once

#include "problems/04_kahan_softmax/draws.hpp"

namespace kbh::softmax {

/// How a row's sum is built: about `density` of its terms are 1, the others just under half an ulp of 1, made smaller
/// by 2^-`below`.
struct Design {
  int density_shift;  // density = 2^-density_shift
  int below;
};

/// T1 of numerics: with N the largest power of two <= density * vocab, N - 1 terms are exactly 1 (logit 0, whatever the
/// implementation of exp), vocab - N terms are c * 2^-24 * 2^-below, and one balances the sum to N * (1 +- 1e-9). An
/// honest kernel then has S, 1 / S and 1 * (1 / S) exact and its outputs sum to 1 within 2e-8; who loses one ulp of S
/// is 1.2e-7 off. c goes round the rows (.98, .94, .75, .60): with a single one, scaling all terms by a constant could
/// turn "lost" into "rounded up".
PowerOfTwoSum power_of_two_sum(const Rows& rows, const Design& design, std::uint32_t first_kind, float shift);

/// Whether the row is long enough: N >= 16, else the rounding of the balancing logit (2^-22 / N) shows.
bool fits(const Design& design, std::int64_t vocab);

}  // namespace kbh::softmax
