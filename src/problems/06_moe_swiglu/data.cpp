#include "problems/06_moe_swiglu/data.hpp"

#include "problems/06_moe_swiglu/draws.hpp"

namespace kbh::moe {
namespace {

// An honest kernel rounds to bf16 (unit roundoff u = 2^-8) once, at out, or up to four times, as the public reference
// does: gate, up, silu and out. Simulated over 1e7 elements a line, gates of deviation 0.02 to 8:
//   * An element is off by 4 u = r of itself at most, but for negative gates, where silu multiplies the relative error
//   of
//     its argument by 1 + g (1 - sigmoid(g)): 0.001 of the row's rms. A sigmoid by tanh.approx, good to 2^-11
//     absolutely, adds 0.003 there. a is three times that. (With r = 2 u the same kernels would need a = 0.045.)
//   * Over the tensor one rounding is 0.425 u = 0.0017 of the norm, two (gate and up) more 0.0029, four 0.0036 at most.
//     Twice that is 0.007; fp8 weights (0.037) lie five times above.
//   * A row has few elements that count, the fewer the shorter it is, since a product of two normals has heavy tails:
//   of
//     300000 rows the worst had 0.0145 at I = 8, 0.0125 at I = 24, 0.005 at I = 1536.
constexpr Bounds kBounds = {.a = 0.01, .r = 0x1p-6, .frobenius = 0.007, .group = 0.025};

}  // namespace

void Inputs::route(const Counts& counts) const {
  std::int64_t end = 0;
  offsets[0] = 0;
  for (std::size_t e = 0; e < counts.size(); ++e) {
    end += counts[e];
    offsets[e + 1] = static_cast<std::int32_t>(end);
  }
}

void nominal_weights(const Weights& weights) {
  fill_each(weights.gate, weights.key.stream("W_gate"), NormalBf16{kWeightScale});
  fill_each(weights.up, weights.key.stream("W_up"), NormalBf16{kWeightScale});
}

void nominal_inputs(const Inputs& inputs) {
  inputs.draw(NormalBf16{kHiddenScale});
  inputs.route_evenly();
}

Case single(std::string name, std::string about, std::function<void(const Inputs&)> fill,
            std::vector<std::string> kills) {
  Case c;
  c.name = std::move(name);
  c.about = std::move(about);
  c.bounds = kBounds;
  c.fill = [fill = std::move(fill)](const DrawKey& key, std::span<const TensorView> tensors) {
    fill(Inputs(key, tensors));
  };
  c.kills = std::move(kills);
  return with_weights(std::move(c), nominal_weights);
}

Case with_weights(Case c, std::function<void(const Weights&)> fill_state) {
  c.fill_state = [fill_state = std::move(fill_state)](const DrawKey& key, std::span<const TensorView> state) {
    fill_state(Weights(key, state));
  };
  return c;
}

Case applying(Case c, std::function<bool(const Sizes&)> applies) {
  c.applies = [applies = std::move(applies)](const Shape& shape) { return applies(Sizes(shape)); };
  return c;
}

Case as_upstream(Case c, UpstreamTolerance tolerance) {
  c.upstream = tolerance;
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& group : {value_cases(), routing_cases(), change_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kbh::moe
