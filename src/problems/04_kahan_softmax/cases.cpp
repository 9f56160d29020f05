#include <algorithm>
#include <functional>
#include <string>

#include "problem/draw.hpp"
#include "problems/04_kahan_softmax/power_of_two_sum.hpp"
#include "problems/04_kahan_softmax/softmax.hpp"

namespace kbh::softmax {
namespace {

using Applies = std::function<bool(const Sizes&)>;
using Names = std::vector<std::string>;

// ---- bounds
// -----------------------------------------------------------------------------------------------------------
//
// Elements: |y - ref| <= 2^-22 (4 + (m - x)) ref + 2^-126. In units of 2^-24 (4 + (m - x)) ref an honest kernel errs by
// at most 0.9 with a library's exp, 1.5 with log2(e) folded into an FMA, 1.9 with ex2.approx of a product rounded once
// (its error grows with the distance from the maximum: hence the factor); the bound is 4. Spread 80 is the worst of the
// cases. 2^-126 lets denormals be flushed.
constexpr double kElement = 0x1p-22;

// Row sums where the sum of exponentials is a power of two and the large terms are exactly 1: S, 1 / S and the large
// outputs have no rounding, so an honest sum is within 1.6e-8 of 1 (n = 4096, 16 ones; 4e-9 and less in longer rows),
// approximate reciprocals included (exact at powers of two on the GPUs that were asked). The first wrong ulp of S is
// 2^-23 (downwards, by way of 1 / S rounded up): twice this bound, and the smallest error that any plain fp32 order
// made.
constexpr double kPowerSum = 0x1p-24;

// Elsewhere S, 1 / S and each product round: honest sums are within 9e-8 of 1, 2.2e-7 when 1 / S is off by an ulp.
constexpr double kOtherSum = 4e-7;

constexpr Bounds kBounds = {.a = kElement, .group = kOtherSum};
constexpr Bounds kPowerBounds = {.a = kElement, .group = kPowerSum};
constexpr Bounds kExactBounds = {.group = kPowerSum, .exact = true};

// fp32 at upstream's default.
constexpr UpstreamTolerance kUpstream = {1e-5, 1e-5};

// ---- draws
// ------------------------------------------------------------------------------------------------------------

/// The tensor x of one draw.
struct Data {
  const DrawKey& key;
  Sizes size;
  std::span<float> x;

  Data(const DrawKey& draw, std::span<const TensorView> tensors)
      : key(draw), size(draw.shape), x(tensors[0].as<float>()) {}

  [[nodiscard]] Rows rows() const { return make_rows(key.stream("x/rows"), vocab()); }
  /// A few numbers of the whole draw.
  [[nodiscard]] Random random() const { return Random(key.stream("x/draw")); }
  [[nodiscard]] std::uint32_t vocab() const { return static_cast<std::uint32_t>(size.vocab); }

  template <typename Draw>
  void fill(const Draw& draw) const {
    fill_each(x, key.stream("x"), draw);
  }
};

constexpr float kNominalScale = 4;

Normal ordinary() { return {kNominalScale}; }
Spiked spiked(const Data& d) { return {d.rows(), 2, 30, 4}; }

using Fill = std::function<void(const Data&)>;

/// Upstream's distributions: one for each value of `extreme`.
void nominal(const Data& d) { d.size.extreme ? d.fill(spiked(d)) : d.fill(ordinary()); }
void other_distribution(const Data& d) { d.size.extreme ? d.fill(ordinary()) : d.fill(spiked(d)); }

void random_scale(const Data& d) { d.fill(Normal{d.random().log_uniform(-6, 3)}); }

void prefix(const Data& d, float first, float rest) {
  constexpr std::uint64_t kPrefix = (std::uint64_t{64} << 10) / sizeof(float);
  d.fill(Prefix{std::min<std::uint64_t>(kPrefix, d.x.size() / 2), first, rest});
}

constexpr std::uint32_t kTile = 1024;
std::uint32_t last_tile(const Data& d) { return (d.vocab() - 1) / kTile * kTile; }

void masked_tiles(const Data& d) { d.fill(MaskedTiles{d.rows(), kTile}); }

/// Tiles of 32 to 4096 columns, at least two of them.
void masked_blocks(const Data& d) {
  std::uint32_t width = 32u << d.random().below(8);
  while (width > 1 && width >= d.vocab()) width /= 2;
  d.fill(MaskedTiles{d.rows(), width});
}

Fill sums(const Design& design, float shift) {
  return [=](const Data& d) {
    const auto first_kind = static_cast<std::uint32_t>(d.random().below(4));
    d.fill(power_of_two_sum(d.rows(), design, first_kind, shift));
  };
}

// ---- changes between two calls
// ----------------------------------------------------------------------------------------

template <typename Change>
void change_some(const Data& d, Change change) {
  Random random(d.key.stream("x/change"));
  const std::int64_t count = random.between(1, 7);
  for (std::int64_t c = 0; c < count; ++c) {
    const std::int64_t row = random.below(d.size.batch);
    const auto values =
        d.x.subspan(static_cast<std::size_t>(row * d.size.vocab), static_cast<std::size_t>(d.size.vocab));
    change(values, values[static_cast<std::size_t>(random.below(d.size.vocab))], random);
  }
}

/// Elements rise above their row's largest: everything in the row changes by a factor.
void raise_some(const Data& d) {
  change_some(d, [](std::span<float> row, float& value, Random& random) {
    value = *std::max_element(row.begin(), row.end()) + random.uniform(0.5f, 2);
  });
}

/// Elements move by 0.25 to 1, seldom near the largest: hardly more than these outputs change.
void nudge_some(const Data& d) {
  change_some(d, [](std::span<float>, float& value, Random& random) {
    const float by = random.uniform(0.25f, 1);
    value += random.below(2) == 0 ? by : -by;
  });
}

// ---- cases
// ------------------------------------------------------------------------------------------------------------

bool always(const Sizes&) { return true; }
bool several_rows(const Sizes& s) { return s.batch >= 2; }
bool power_of_two(const Sizes& s) { return (s.vocab & (s.vocab - 1)) == 0; }
Applies wider_than(std::int64_t columns) {
  return [columns](const Sizes& s) { return s.vocab > columns; };
}
Applies long_enough(const Design& design) {
  return [design](const Sizes& s) { return fits(design, s.vocab); };
}

Case made(std::string name, std::string about, Bounds bounds, const Fill& fill, Names kills, Names barely_kills) {
  Case c;
  c.name = std::move(name);
  c.about = std::move(about);
  c.fill = [fill](const DrawKey& key, std::span<const TensorView> tensors) { fill(Data(key, tensors)); };
  c.bounds = bounds;
  c.kills = std::move(kills);
  c.barely_kills = std::move(barely_kills);
  return c;
}

/// A grade draws few cases for a shape that is not listed. For the long hidden rows these shall be those about the sum.
Case single(std::string name, std::string about, const Applies& applies, const Fill& fill, Names kills,
            Names barely_kills = {}) {
  Case c = made(std::move(name), std::move(about), kBounds, fill, std::move(kills), std::move(barely_kills));
  c.applies = [applies](const Shape& shape) {
    const Sizes size(shape);
    return size.vocab != kHiddenVocab && applies(size);
  };
  return c;
}

Case summation(std::string name, std::string about, const Design& design, float shift, Bounds bounds, Names kills,
               Names barely_kills) {
  Case c =
      made(std::move(name), std::move(about), bounds, sums(design, shift), std::move(kills), std::move(barely_kills));
  c.applies = [applies = long_enough(design)](const Shape& shape) { return applies(Sizes(shape)); };
  return c;
}

Case in_place(std::string name, std::string about, const Fill& change, Names kills) {
  Case c = single(std::move(name), std::move(about), always, nominal, std::move(kills));
  c.kind = CaseKind::repeated;
  c.change = [change](const DrawKey& key, int, std::span<const TensorView> tensors, const Expected&) {
    change(Data(key, tensors));
  };
  return c;
}

Case nominal_case() {
  Case c = made("nominal", "normal x 4, or normal x 2 with four logits of 30 in each row: the public distributions",
                kBounds, nominal,
                {"zeros", "constant", "copy_of_input", "permuted_rows", "stale", "one_wrong", "no_rescale",
                 "fp16_exponential", "bf16_exponential"},
                {});
  c.nominal = true;
  c.upstream = kUpstream;
  return c;
}

std::vector<Case> amplitude_cases() {
  return {
      nominal_case(),
      single("other_distribution", "the public distribution of the shapes with the other value of extreme", always,
             other_distribution,
             {"constant", "stale", "one_wrong", "no_rescale", "permuted_rows", "fp16_exponential", "bf16_exponential"}),
      single("near_equal", "normal x 2^-10: every term counts", always, [](const Data& d) { d.fill(Normal{0x1p-10f}); },
             {"zeros", "constant", "no_rescale", "last_tile_dropped", "one_wrong"}),
      single("random_scale", "normal x a random scale in 2^-6..2^3: recognition of the public scale", always,
             random_scale, {"zeros", "copy_of_input", "stale", "one_wrong", "bf16_exponential"}),
      single("mixed_rows", "each row has an amplitude in 2^-6..2^3", several_rows,
             [](const Data& d) {
               d.fill(MixedTiles{d.rows(), d.vocab(), -6, 3});
             },
             {"shared_sum", "permuted_rows", "one_wrong"}),
      single("mixed_tiles", "each 1024 columns of a row have an amplitude in 2^-6..2^3", wider_than(kTile),
             [](const Data& d) {
               d.fill(MixedTiles{d.rows(), kTile, -6, 3});
             },
             {"no_rescale", "bf16_exponential", "one_wrong"}),
      single("mixed_columns", "each column has an amplitude in 2^-6..2^3", always,
             [](const Data& d) {
               d.fill(MixedColumns{d.rows(), -6, 3});
             },
             {"no_rescale", "bf16_exponential", "one_wrong"}),
      single("prefix_nominal", "the first 64 KiB nominal, the rest x 8: a look at the first elements only", always,
             [](const Data& d) { prefix(d, kNominalScale, 8 * kNominalScale); },
             {"prefix_maximum", "no_maximum", "fixed_shift", "clamped_logits", "small_terms_skipped"}),
      single("prefix_large", "the first 64 KiB x 8, the rest nominal: a look at the first elements only", always,
             [](const Data& d) { prefix(d, 8 * kNominalScale, kNominalScale); },
             {"prefix_maximum", "no_maximum", "small_terms_skipped", "one_wrong"}),
      single("spread_80", "uniform over 80: outputs down to 1e-35, each with a relative tolerance", always,
             [](const Data& d) {
               d.fill(Uniform{-80, 0});
             },
             {"small_terms_skipped", "clamped_logits", "fp16_exponential", "bf16_exponential", "one_wrong"}),
      single("shift_up", "nominal + about 100: exponentials without the maximum overflow", always,
             [](const Data& d) {
               d.fill(Shifted{d.rows(), kNominalScale, 90, 110});
             },
             {"no_maximum", "clamped_logits", "rounded_products"}),
      single("shift_down", "nominal - about 200: exponentials without the maximum vanish", always,
             [](const Data& d) {
               d.fill(Shifted{d.rows(), kNominalScale, -210, -190});
             },
             {"no_maximum", "fixed_shift", "clamped_logits", "rounded_products"}),
      single("shift_rows", "rows at + and - 100 to 200 in turn: one maximum for several rows", several_rows,
             [](const Data& d) {
               const auto parity = static_cast<std::uint32_t>(d.random().below(2));
               d.fill(Shifted{d.rows(), kNominalScale, 100, 200, parity});
             },
             {"row_0_maximum", "prefix_maximum", "no_maximum", "fixed_shift", "rounded_products"}),
  };
}

std::vector<Case> arrangement_cases() {
  Case equal_powers = single("equal_powers", "equal logits of +-2^k, n a power of two: exactly 1 / n, bit for bit",
                             power_of_two, [](const Data& d) { d.fill(EqualPower{d.rows()}); },
                             {"zeros", "copy_of_input", "last_tile_dropped", "one_wrong"});
  equal_powers.bounds = kExactBounds;
  return {
      equal_powers,
      single("equal", "equal logits: every output is 1 / n", always,
             [](const Data& d) {
               d.fill(Equal{d.rows(), 50});
             },
             {"zeros", "copy_of_input", "last_tile_dropped", "one_wrong"}),
      single("ascending", "sorted: a running maximum moves with every element", always,
             [](const Data& d) {
               d.fill(Ramp{d.rows(), -40, 40});
             },
             {"no_rescale", "small_terms_skipped", "one_wrong"}),
      single("descending", "sorted: the largest in front, the last tile hardly counts", always,
             [](const Data& d) {
               d.fill(Ramp{d.rows(), 40, -40});
             },
             {"small_terms_skipped", "bf16_exponential", "one_wrong"}),
      single("peak_last_tile", "one logit of 120 in the last 1024 columns: the maximum of the first tile overflows",
             wider_than(kTile),
             [](const Data& d) {
               d.fill(Peak{d.rows(), last_tile(d), d.vocab(), 120});
             },
             {"first_tile_maximum", "no_maximum", "fixed_shift", "no_rescale", "last_tile_dropped"}),
      single("peak_first_tile", "one logit of 120 in the first 1024 columns", always,
             [](const Data& d) {
               d.fill(Peak{d.rows(), 0, std::min(kTile, d.vocab()), 120});
             },
             {"no_maximum", "fixed_shift", "zeros"}),
      single("masked_tiles", "whole tiles of 1024 columns are -inf: -inf minus -inf", wider_than(kTile), masked_tiles,
             {"masked_tile_nan", "clamped_logits", "one_wrong"}),
      single("masked_blocks", "whole tiles of 32 to 4096 columns are -inf", wider_than(1), masked_blocks,
             {"clamped_logits", "one_wrong"}),
      single("masked_front", "the first half of a row or more is -inf", wider_than(1),
             [](const Data& d) {
               d.fill(MaskedSide{d.rows(), true});
             },
             {"masked_tile_nan", "first_tile_maximum", "no_rescale"}),
      single("masked_back", "the last half of a row or more is -inf (padding)", wider_than(1),
             [](const Data& d) {
               d.fill(MaskedSide{d.rows(), false});
             },
             {"masked_tile_nan", "clamped_logits"}),
      single("masked_half", "half of the columns are -inf, in random order", wider_than(1),
             [](const Data& d) {
               d.fill(MaskedBut{d.rows(), (d.vocab() + 1) / 2});
             },
             {"clamped_logits", "one_wrong"}),
      single("masked_but_one", "one finite logit per row: 1 there, 0 elsewhere", wider_than(1),
             [](const Data& d) {
               d.fill(MaskedBut{d.rows(), 1});
             },
             {"masked_tile_nan", "clamped_logits", "zeros", "one_wrong"}),
      in_place("in_place_raise", "the same buffers, 1 to 7 random elements become the largest: sums kept from before",
               raise_some, {"stale", "remembered_sum"}),
      in_place("in_place_nudge", "the same buffers, 1 to 7 random elements change a little: answers kept from before",
               nudge_some, {"stale"}),
  };
}

std::vector<Case> summation_cases() {
  constexpr Design kA = {4, 0};
  constexpr Design kB = {6, 0};
  constexpr Design kD = {6, 3};
  constexpr Design kF = {8, 0};
  const Names plain = {"serial", "lanes_8", "lanes_16", "lanes_32", "runs_256"};
  // Orders that lose few ulps of S; the smallest loss that there is, one ulp, is twice the bound but for a percent.
  const Names careful = {"threads_256",         "threads_1024",  "pairwise_halves",
                         "pairwise_neighbours", "tiles_in_turn", "kahan_restarted"};
  return {
      summation("sum_16", "a power of two: 1 in 16 terms is 1, the others are just under half an ulp of it", kA, 0,
                kPowerBounds, plain, careful),
      summation("sum_64", "the same with 1 in 64: longer runs of what a plain sum loses", kB, 0, kPowerBounds, plain,
                {}),
      summation("sum_64_eighths", "the same, small terms of a sixteenth of an ulp: what trees lose", kD, 0,
                kPowerBounds, {"serial", "lanes_8", "lanes_16", "lanes_32"}, {}),
      summation("sum_256", "the same with 1 in 256", kF, 0, kPowerBounds, plain, {}),
      summation("sum_64_shifted", "1 in 64, each row shifted by -10..10: no term is exactly 1", kB, 10, kBounds,
                {"serial", "lanes_8", "lanes_16", "lanes_32"}, {}),
  };
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& group : {amplitude_cases(), arrangement_cases(), summation_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected) {
  const Data d(key, tensors);
  Random random(key.stream("x/refreshed"));
  const std::int64_t count = 1 + random.below(std::min<std::int64_t>(d.size.batch / 8 + 1, 8));
  const std::uint64_t stream = key.stream("x");
  const auto redraw = [&](std::int64_t row, const auto& draw) {
    const auto first = static_cast<std::uint64_t>(row * d.size.vocab);
    for (std::uint64_t i = first; i < first + d.vocab(); ++i) d.x[i] = draw(philox::words(stream, i), i);
  };
  for (std::int64_t c = 0; c < count; ++c) {
    const std::int64_t row = random.below(d.size.batch);
    d.size.extreme ? redraw(row, spiked(d)) : redraw(row, ordinary());
    oracle_row(d.size, d.x, row, expected);
  }
}

}  // namespace kbh::softmax
