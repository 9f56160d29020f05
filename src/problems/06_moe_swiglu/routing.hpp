// How many rows each expert owns. All functions return E counts whose sum is `rows`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/draw.hpp"

namespace kbh::moe {

using Counts = std::vector<std::int64_t>;

/// The public distribution: equal shares, the remainder to the first experts.
Counts balanced(std::int64_t rows, std::int64_t experts);

/// Random cuts of the rows among `owners`, in ascending order; all others are empty. Any owner may be empty, too.
Counts ragged(std::int64_t rows, std::int64_t experts, std::span<const std::int64_t> owners, Random& random);

/// One row to each expert as long as there are any, the others to a random one.
Counts one_row_each(std::int64_t rows, std::int64_t experts, Random& random);

/// A random one of `sizes` to each expert, in random order, as long as the rows last; what is left to a random one.
Counts sized(std::int64_t rows, std::int64_t experts, std::span<const std::int64_t> sizes, Random& random);

/// Shares that fall like 1/1, 1/2, 1/3, ..., in random order: a few hot experts and a long tail.
Counts zipf(std::int64_t rows, std::int64_t experts, Random& random);

/// The public property case: `delta` rows go from `donor` and the experts behind it to `receiver`; each keeps one.
Counts donated(std::int64_t rows, std::int64_t experts, std::int64_t receiver, std::int64_t donor, std::int64_t delta);

std::vector<std::int64_t> all_experts(std::int64_t experts);

/// All but experts [begin, end).
std::vector<std::int64_t> all_but(std::int64_t experts, std::int64_t begin, std::int64_t end);

/// About one expert in three, in runs, with runs of empty ones between; at least one.
std::vector<std::int64_t> random_runs(std::int64_t experts, Random& random);

}  // namespace kbh::moe
