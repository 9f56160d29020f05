// Matrix products of the oracles, in fp64.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace kbh {

/// c (m x n) = a (m x k) * b (k x n), all row-major and dense; on all processors. Sums run in the order of k, each
/// product and sum rounded to fp64 (fused or not by the processor's kind): relative error below k * 2^-53 of the sum of
/// the magnitudes, exact where every partial sum is a double.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, std::span<const double> a, std::span<const double> b,
              std::span<double> c);

/// The same by other means, which keep these bounds: a GPU that is there anyway.
using Multiply = std::function<void(std::int64_t m, std::int64_t n, std::int64_t k, std::span<const double> a,
                                    std::span<const double> b, std::span<double> c)>;

/// While it lives, products that are worth the way go to `elsewhere`. One at a time, made before threads multiply.
class MultiplyElsewhere {
 public:
  explicit MultiplyElsewhere(Multiply elsewhere);
  MultiplyElsewhere(const MultiplyElsewhere&) = delete;
  MultiplyElsewhere& operator=(const MultiplyElsewhere&) = delete;
  ~MultiplyElsewhere();
};

}  // namespace kbh
