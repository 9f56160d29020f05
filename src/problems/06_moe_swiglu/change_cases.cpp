#include <algorithm>

#include <kbh/numbers.hpp>

#include "problems/06_moe_swiglu/data.hpp"

namespace kbh::moe {
namespace {

Case repeated(Case c, std::function<void(const Inputs&, Random&)> change) {
  c.kind = CaseKind::repeated;
  c.calls = 3;
  c.change = [change = std::move(change)](const DrawKey& key, int step, std::span<const TensorView> tensors,
                                          const Expected&) {
    Random random(key.stream("change/" + std::to_string(step)));
    change(Inputs(key, tensors), random);
  };
  return c;
}

double rms(std::span<const std::uint16_t> row) {
  double squares = 0;
  for (const std::uint16_t x : row) {
    const auto value = static_cast<double>(from_bf16(x));
    squares += value * value;
  }
  return std::sqrt(squares / static_cast<double>(row.size()));
}

/// 1 to 7 elements move by 32 to 64 rms of their row. A change of d rms in one of H terms moves gate and up by
/// d / sqrt(H) of theirs: half of it at H = 4096, 50 times the bound of a row.
void move_elements(const Inputs& in, Random& random) {
  for (std::int64_t left = random.between(1, 7); left > 0; --left) {
    const std::span<std::uint16_t> row = in.row(random.below(in.size.rows()));
    std::uint16_t& element = row[index(random.below(in.size.width))];
    const float size = static_cast<float>(rms(row)) * random.uniform(32, 64);
    element = to_bf16(from_bf16(element) + (random.below(2) == 0 ? size : -size));
  }
}

/// A boundary between two experts moves to a random place between the two beside it.
void move_boundary(const Inputs& in, Random& random) {
  std::int64_t boundary = random.between(1, in.size.experts - 1);
  const auto room = [&] { return in.offsets[index(boundary + 1)] - in.offsets[index(boundary - 1)]; };
  while (room() == 0) boundary = boundary % (in.size.experts - 1) + 1;
  const std::int32_t former = in.offsets[index(boundary)];
  const std::int32_t first = in.offsets[index(boundary - 1)];
  in.offsets[index(boundary)] =
      first + static_cast<std::int32_t>((former - first + random.between(1, room())) % (room() + 1));
}

Case two_states() {
  Case c = single("two_states", "two objects with weights of their own, called in turn", nominal_inputs,
                  {"first_weights", "stale"});
  c.kind = CaseKind::two_states;
  return c;
}

}  // namespace

std::vector<Case> change_cases() {
  return {
      repeated(
          single("elements_in_place", "the same buffers, 1 to 7 elements of hidden change: answers kept from before",
                 nominal_inputs, {"stale", "checked_memo"}),
          move_elements),
      applying(repeated(single("offsets_in_place", "the same buffers, one expert's end moves: routing kept from before",
                               nominal_inputs, {"stale", "cached_routing"}),
                        move_boundary),
               [](const Sizes& size) { return size.experts >= 2; }),
      two_states(),
  };
}

}  // namespace kbh::moe
