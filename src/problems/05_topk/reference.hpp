// Top-k of each row, to be read: orders the indices of the row and writes down the first k.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace kbh::reference {

/// x fp32 (batch, n), row-major -> values fp32 and indices int64, both (batch, k): the k largest of each row, largest
/// first; of equal ones the lower index first. No NaN. values[j] is x[indices[j]], bit for bit.
inline void topk(const float* x, float* values, std::int64_t* indices, std::int64_t batch, std::int64_t n,
                 std::int64_t k) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < batch; ++row, x += n, values += k, indices += k) {
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [x](std::int64_t a, std::int64_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
    std::copy_n(order.begin(), k, indices);
    for (std::int64_t j = 0; j < k; ++j) values[j] = x[indices[j]];
  }
}

}  // namespace kbh::reference
