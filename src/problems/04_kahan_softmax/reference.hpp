// Softmax of each row, to be read: three passes, everything in fp64, rounded once at the end. A wider accumulator is
// one of the two ways to keep what a plain fp32 sum loses; the other is to carry the lost part along (compensation).
#pragma once

#include <cmath>
#include <cstdint>

namespace kbh::reference {

/// x, y fp32 (batch, vocab), row-major. y[r][i] = exp(x[r][i] - m) / sum_j exp(x[r][j] - m), where m is the row's
/// largest logit. Logits are finite or -inf, and at least one of a row is finite.
inline void softmax(const float* x, float* y, std::int64_t batch, std::int64_t vocab) {
  for (std::int64_t row = 0; row < batch; ++row, x += vocab, y += vocab) {
    float largest = x[0];
    for (std::int64_t i = 1; i < vocab; ++i) largest = x[i] > largest ? x[i] : largest;

    const auto exponential = [&](std::int64_t i) {
      return std::exp(static_cast<double>(x[i]) - static_cast<double>(largest));
    };
    double sum = 0;
    for (std::int64_t i = 0; i < vocab; ++i) sum += exponential(i);
    for (std::int64_t i = 0; i < vocab; ++i) y[i] = static_cast<float>(exponential(i) / sum);
  }
}

}  // namespace kbh::reference
