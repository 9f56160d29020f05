// The tensors of one draw, and how a case is put together. value_cases.cpp: what numbers there are; routing_cases.cpp:
// which rows meet which expert; change_cases.cpp: what changes from call to call.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/draw.hpp"
#include "problems/06_moe_swiglu/moe.hpp"
#include "problems/06_moe_swiglu/routing.hpp"

namespace kbh::moe {

// Of the public distribution.
constexpr float kHiddenScale = 0.1f;
constexpr float kWeightScale = 0.02f;

/// The state of one draw.
struct Weights {
  const DrawKey& key;
  Sizes size;
  std::span<std::uint16_t> gate;
  std::span<std::uint16_t> up;

  Weights(const DrawKey& draw, std::span<const TensorView> state)
      : key(draw), size(draw.shape), gate(state[0].as<std::uint16_t>()), up(state[1].as<std::uint16_t>()) {}

  [[nodiscard]] Random random(std::string_view purpose) const { return Random(key.stream(purpose)); }
};

/// The inputs of one draw; its state is drawn already.
struct Inputs {
  const DrawKey& key;
  Sizes size;
  std::span<std::uint16_t> hidden;
  std::span<std::int32_t> offsets;

  Inputs(const DrawKey& draw, std::span<const TensorView> tensors)
      : key(draw), size(draw.shape), hidden(tensors[2].as<std::uint16_t>()), offsets(tensors[3].as<std::int32_t>()) {}

  [[nodiscard]] Random random(std::string_view purpose) const { return Random(key.stream(purpose)); }
  [[nodiscard]] std::span<std::uint16_t> row(std::int64_t r) const {
    return hidden.subspan(index(r * size.width), index(size.width));
  }
  void route(const Counts& counts) const;
  void route_evenly() const { route(balanced(size.rows(), size.experts)); }

  /// Draws hidden from its stream with one of draws.hpp.
  template <typename Draw>
  void draw(Draw how) const {
    fill_each(hidden, key.stream("hidden"), how);
  }
};

void nominal_weights(const Weights& weights);
void nominal_inputs(const Inputs& inputs);

/// The part of a case that differs from case to case. Nominal weights, every shape, the bounds of bounds() unless a
/// case says otherwise.
Case single(std::string name, std::string about, std::function<void(const Inputs&)> fill,
            std::vector<std::string> kills);
Case with_weights(Case c, std::function<void(const Weights&)> fill_state);
Case applying(Case c, std::function<bool(const Sizes&)> applies);
Case as_upstream(Case c, UpstreamTolerance tolerance);

std::vector<Case> value_cases();
std::vector<Case> routing_cases();
std::vector<Case> change_cases();

}  // namespace kbh::moe
