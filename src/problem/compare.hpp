// The comparison of floating-point outputs with the oracle (architecture section 6; reference: Bounds in problem.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace kbh {

/// What compare_output needs to know of one output.
struct OutputRule {
  /// Scale of element i: what `Bounds::a` multiplies. Empty: nowhere used (a = 0).
  std::span<const double> scale;
  /// Elements are grouped (rows, chunks) for Bounds::group: element i belongs to group i / group_size, or to
  /// group_of[i] where that is given. 0: no groups.
  std::int64_t group_size = 0;
  std::span<const std::int32_t> group_of;
  /// The rule in words, with its derivation: what a submitter reads below a wrong element.
  std::string words;
};

/// One bf16 or fp32 output against the oracle's doubles. Finite where the oracle is finite; where the oracle is
/// infinite or NaN, the same. A NaN anywhere else fails. Comparison::worst is the largest error / bound over elements,
/// tensor and groups.
Comparison compare_output(const ConstTensorView& output, std::span<const double> expected, const Bounds& bounds,
                          const OutputRule& rule);

/// Several outputs' comparisons as one: fails when one fails, the worst, the sums, the first mismatch.
Comparison combined(std::span<const Comparison> comparisons);

/// One scale per element: max(rms of the element's row of `width`, rms of its block of `block` elements / 16). The
/// floor keeps rows of pure cancellation from having no tolerance at all. For attention, KDA, MoE, lightning (numerics:
/// rms scale).
std::vector<double> rms_scales(std::span<const double> expected, std::int64_t width, std::int64_t block);

/// Whether upstream's checker would accept all floating-point outputs: allclose(out, ref) with rtol on |out|, no NaN or
/// infinity in the output. Outputs the oracle leaves empty are skipped.
bool accepted_upstream(const UpstreamTolerance& tolerance, const Expected& expected,
                       std::span<const ConstTensorView> outputs);

}  // namespace kbh
