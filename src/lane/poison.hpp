#pragma once

#include <cstdint>

#include "problem/problem.hpp"

namespace kbh {

/// Fills a tensor with values that no right answer holds: signalling NaNs for floats, numbers near the minimum for
/// signed integers, noise elsewhere. The pattern varies with `salt` and position, so that it cannot be recognised and
/// mended.
void poison(const TensorView& tensor, std::uint64_t salt);

}  // namespace kbh
