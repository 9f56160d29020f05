#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <kbh/numbers.hpp>

#include "../redteam/mutants/02_kda/wrong.hpp"
#include "problem/host_answer.hpp"
#include "problem/registry.hpp"
#include "problems/02_kda/data.hpp"
#include "problems/02_kda/kda.hpp"

namespace kbh::kda {
namespace {

using testing::HasSubstr;

Shape shape(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t keys, std::int64_t values) {
  return {{{"B", batch}, {"T", tokens}, {"H", heads}, {"K", keys}, {"V", values}}};
}

const Problem& problem() { return find_problem("02_kda_cutlass"); }

DrawKey key(const Shape& s, std::string_view case_name, int trial = 0) {
  return {"0123456789abcdef", "02_kda", 1, s, std::string(case_name), trial};
}

/// All tensors of one shape; inputs are zero (gates: 1) until something is drawn.
struct Tensors {
  Shape of;
  Sizes size;
  std::vector<TensorSpec> specs;
  std::vector<std::uint16_t> q, k, v, beta, o;
  std::vector<float> g;

  explicit Tensors(const Shape& s)
      : of(s),
        size(s),
        specs(problem().tensors(s)),
        q(index(specs[kQ].elements())),
        k(q.size()),
        v(index(specs[kV].elements())),
        beta(index(specs[kBeta].elements())),
        o(v.size(), 0x7fc0),
        g(q.size()) {}

  std::vector<TensorView> inputs() {
    const auto at = [](auto& x) { return reinterpret_cast<std::byte*>(x.data()); };
    return {
        {&specs[kQ], at(q)}, {&specs[kK], at(k)}, {&specs[kV], at(v)}, {&specs[kG], at(g)}, {&specs[kBeta], at(beta)}};
  }
  std::vector<ConstTensorView> given() {
    const auto views = inputs();
    return {views.begin(), views.end()};
  }
  std::vector<TensorView> outputs() { return {{&specs[5], reinterpret_cast<std::byte*>(o.data())}}; }

  Expected expected() { return oracle(of, given()); }
  void answer(const Answer& kernel) { kernel(of, given(), outputs(), {}); }
  Comparison judge(const Case& c, const Expected& wanted) {
    const auto out = outputs();
    return compare(of, c, given(), wanted, std::vector<ConstTensorView>(out.begin(), out.end()));
  }
};

Tensors drawn(const Case& c, const Shape& s, int trial = 0) {
  Tensors tensors(s);
  c.fill(key(s, c.name, trial), tensors.inputs());
  return tensors;
}

const Case& the_case(std::string_view name) { return *problem().find_case(name); }

Answer kernel(const kda_wrong::Recipe& recipe) {
  return host_answer([recipe](const kbh_tensor*, const kbh_tensor* inputs, const kbh_tensor* outputs) {
    kda_wrong::compute(recipe, inputs, outputs);
  });
}

const Mutant& mutant(std::string_view name) {
  const auto& all = problem().mutants;
  return *std::find_if(all.begin(), all.end(), [&](const Mutant& m) { return m.name == name; });
}

// ---- shapes and work

TEST(Kda, WorkOfThePublicShapes) {
  const Work work = problem().work(shape(2, 1024, 8, 128, 128));
  EXPECT_EQ(work.upstream_flops, 2147483648.0);
  EXPECT_EQ(work.upstream_bytes, 25198592);
  EXPECT_EQ(work.min_bytes, 25198592);
  EXPECT_EQ(work.flops, 16384.0 * (6 * 128 * 128 + 2 * 64 * 256));
  double tensors = 0;
  for (const TensorSpec& spec : problem().tensors(shape(1, 192, 3, 64, 128)))
    tensors += static_cast<double>(spec.bytes());
  EXPECT_EQ(problem().work(shape(1, 192, 3, 64, 128)).min_bytes, tensors);
}

TEST(Kda, DomainErrorsSayWhatIsWrong) {
  const auto wrong = [](const Shape& s) { return problem().outside_domain(s).value_or(""); };
  EXPECT_EQ(wrong(shape(2, 1024, 8, 128, 128)), "");
  EXPECT_EQ(wrong(shape(1, 64, 1, 64, 128)), "");
  EXPECT_THAT(wrong(shape(1, 100, 1, 128, 128)), HasSubstr("T is 100, expected a multiple of 64"));
  EXPECT_THAT(wrong(shape(1, 0, 1, 128, 128)), HasSubstr("T is 0"));
  EXPECT_THAT(wrong(shape(1, 8256, 1, 128, 128)), HasSubstr("up to 8192"));
  EXPECT_THAT(wrong(shape(1, 64, 1, 96, 128)), HasSubstr("K is 96, expected 64 or 128"));
  EXPECT_THAT(wrong(shape(1, 64, 1, 128, 256)), HasSubstr("V is 256"));
  EXPECT_THAT(wrong(shape(0, 64, 1, 128, 128)), HasSubstr("B and H of at least 1"));
  EXPECT_THAT(wrong(shape(1, 64, -1, 128, 128)), HasSubstr("B and H of at least 1"));
  EXPECT_THAT(wrong(shape(64, 8192, 64, 128, 128)), HasSubstr("at most 1048576 together"));
}

TEST(Kda, NeighboursBreakWhatListedShapesShare) {
  for (const Shape& s : {shape(2, 1024, 8, 128, 128), shape(1, 4096, 8, 128, 128), shape(1, 64, 1, 64, 64)}) {
    const auto neighbours = problem().neighbours(s);
    const auto any = [&](auto what) { return std::any_of(neighbours.begin(), neighbours.end(), what); };
    EXPECT_TRUE(any([](const Shape& n) { return n["T"] / 64 % 2 == 1; }));
    EXPECT_TRUE(any([](const Shape& n) { return n["K"] < n["V"]; }));
    EXPECT_TRUE(any([](const Shape& n) { return n["K"] > n["V"]; }));
    EXPECT_TRUE(any([&](const Shape& n) { return n["H"] == s["H"] + 1; }));
    EXPECT_TRUE(any([&](const Shape& n) { return n["T"] == s["T"] + 64; }));
    for (const Shape& n : neighbours) EXPECT_LE(problem().work(n).flops, 2e9) << n.text();
  }
}

// ---- the oracle

/// Writes `value` at channel d of token t's vector, in every chain.
void put(const Sizes& size, std::vector<std::uint16_t>& x, std::int64_t width, std::int64_t t, std::int64_t d,
         float value) {
  for (std::int64_t chain = 0; chain < size.chains(); ++chain)
    x[index(size.row(chain, t) * width + d)] = to_bf16(value);
}

/// Two tokens write under the same unit key, every token reads that channel.
Tensors two_writes(float beta) {
  Tensors t(shape(1, 128, 2, 64, 64));
  for (std::int64_t token = 0; token < 128; ++token) put(t.size, t.q, 64, token, 5, 1);
  for (const std::int64_t token : {10, 70}) {
    put(t.size, t.k, 64, token, 5, 1);
    put(t.size, t.beta, 1, token, 0, beta);
  }
  put(t.size, t.v, 64, 10, 0, 3);
  put(t.size, t.v, 64, 70, 0, 8);
  return t;
}

double at(const Tensors& t, const Expected& e, std::int64_t chain, std::int64_t token, std::int64_t c) {
  return e.outputs[0][index(t.size.row(chain, token) * t.size.value_width + c)];
}

TEST(KdaOracle, ASecondWriteReplacesTheFirst) {
  const Tensors t = two_writes(1);
  const Expected e = Tensors(t).expected();
  for (std::int64_t token = 0; token < 128; ++token) {
    const double remembered = token < 10 ? 0 : token < 70 ? 3 : 8;
    EXPECT_EQ(at(t, e, 1, token, 0), remembered / 8) << token;  // K^-1/2 = 1/8
    EXPECT_EQ(at(t, e, 1, token, 1), 0);
  }
}

TEST(KdaOracle, BetaMixesOldAndNew) {
  const Tensors t = two_writes(0.5f);
  const Expected e = Tensors(t).expected();
  EXPECT_EQ(at(t, e, 0, 69, 0), 1.5 / 8);
  EXPECT_EQ(at(t, e, 0, 70, 0), (1.5 + 0.5 * (8 - 1.5)) / 8);
}

TEST(KdaOracle, GatesActBeforeTheWriteAndOnTheirChannel) {
  Tensors t = two_writes(1);
  for (std::int64_t token = 0; token < 128; ++token)
    for (std::int64_t d = 0; d < 64; ++d) t.g[index(t.size.row(0, token) * 64 + d)] = d == 5 ? -0.25f : -8;
  const Expected e = t.expected();
  EXPECT_DOUBLE_EQ(at(t, e, 0, 10, 0), 3.0 / 8);  // its own gate has not faded it
  EXPECT_DOUBLE_EQ(at(t, e, 0, 14, 0), 3.0 / 8 * std::exp(-1.0));
  EXPECT_DOUBLE_EQ(at(t, e, 0, 70, 0), 8.0 / 8);
  EXPECT_EQ(at(t, e, 1, 69, 0), 3.0 / 8);  // the other head has no gates
}

/// The chunk form and the token form, each in fp64, differ by the output's rounding and no more.
TEST(KdaOracle, AgreesWithTheChunkFormOnEveryCase) {
  for (const Shape& s : {shape(2, 256, 2, 64, 128), shape(1, 320, 3, 128, 64), shape(1, 64, 1, 64, 64)})
    for (const Case& c : problem().cases) {
      if (c.applies && !c.applies(s)) continue;
      SCOPED_TRACE(c.name + " " + s.text());
      Tensors t = drawn(c, s);
      const Expected e = t.expected();
      t.answer(problem().honest);
      const auto larger = [](double a, double b) { return std::abs(a) < std::abs(b); };
      const double peak = std::abs(*std::max_element(e.outputs[0].begin(), e.outputs[0].end(), larger));
      for (std::size_t i = 0; i < t.o.size(); ++i) {
        const double wanted = e.outputs[0][i];
        ASSERT_NEAR(static_cast<double>(from_bf16(t.o[i])), wanted, 0x1.001p-8 * std::abs(wanted) + 1e-12 * peak) << i;
      }
    }
}

TEST(KdaOracle, APlantedErrorIsSeenByTheReference) {
  const Shape s = shape(1, 256, 2, 64, 64);
  Tensors t = drawn(problem().nominal(), s);
  t.answer(problem().honest);
  ASSERT_TRUE(t.judge(problem().nominal(), t.expected()).pass);
  Tensors one_gate_late = t;
  std::rotate(one_gate_late.g.begin(), one_gate_late.g.end() - 128, one_gate_late.g.end());  // a token's two heads
  EXPECT_FALSE(t.judge(problem().nominal(), one_gate_late.expected()).pass);
  Tensors no_beta = t;
  std::fill(no_beta.beta.begin(), no_beta.beta.end(), to_bf16(1));
  EXPECT_FALSE(t.judge(problem().nominal(), no_beta.expected()).pass);
}

TEST(KdaOracle, RefreshChangesOneChainAndKeepsTheAnswerRight) {
  for (const Shape& s : {shape(2, 128, 3, 64, 64), shape(1, 192, 1, 128, 64)}) {
    Tensors t = drawn(problem().nominal(), s);
    Expected kept = t.expected();
    for (int trial = 1; trial < 5; ++trial) {
      const Tensors before = t;
      refresh(key(s, "nominal", trial), t.inputs(), kept);
      EXPECT_EQ(kept.outputs, t.expected().outputs);
      std::set<std::int64_t> changed;
      for (std::int64_t chain = 0; chain < t.size.chains(); ++chain)
        for (std::int64_t token = 0; token < t.size.tokens; ++token) {
          const auto row = static_cast<std::ptrdiff_t>(t.size.row(chain, token) * t.size.key_width);
          if (!std::equal(t.q.begin() + row, t.q.begin() + row + t.size.key_width, before.q.begin() + row) &&
              !std::equal(t.g.begin() + row, t.g.begin() + row + t.size.key_width, before.g.begin() + row))
            changed.insert(chain);
        }
      EXPECT_EQ(changed.size(), 1u);
      t.answer(problem().honest);
      EXPECT_TRUE(t.judge(problem().nominal(), kept).pass);
    }
  }
}

// ---- the comparison

TEST(KdaComparison, EveryChunkCounts) {
  const Shape s = shape(1, 512, 2, 64, 64);
  for (const std::string_view name : {"nominal", "fade", "mixed_blocks", "long_memory"}) {
    SCOPED_TRACE(name);
    const Case& c = the_case(name);
    Tensors t = drawn(c, s);
    const Expected e = t.expected();
    t.answer(problem().honest);
    ASSERT_TRUE(t.judge(c, e).pass);
    const std::vector<std::uint16_t> right = t.o;
    for (std::int64_t chunk = 0; chunk < t.size.chunks(); ++chunk) {
      t.o = right;
      for (std::int64_t i = 0; i < kChunk; ++i)
        std::fill_n(t.o.begin() + t.size.row(1, chunk * kChunk + i) * 64, 64, std::uint16_t{0});
      EXPECT_FALSE(t.judge(c, e).pass) << chunk;
    }
  }
}

TEST(KdaComparison, NothingPassesThatIsNotANumber) {
  for (const Case& c : problem().cases) {
    const Shape s = shape(1, 256, 2, 64, 64);
    if (c.applies && !c.applies(s)) continue;
    Tensors t = drawn(c, s);
    const Expected e = t.expected();
    t.answer(problem().honest);
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Tensors spoiled = t;
      spoiled.o[100] = to_bf16(wrong);
      EXPECT_FALSE(spoiled.judge(c, e).pass) << c.name << " " << wrong;
    }
  }
}

// ---- the bounds

/// A kernel may round what goes into its tensor-core products, what comes out of them, and the state, to bf16, and
/// invert by blocks of 16 with 10 mantissa bits.
TEST(KdaBounds, LeaveRoomForHonestLowPrecision) {
  using kda_wrong::Format;
  kda_wrong::Recipe rounded;
  rounded.operands = rounded.intermediates = rounded.state = Format::bf16;
  kda_wrong::Recipe blocks = rounded;
  blocks.solve = kda_wrong::Solve::doubling;
  blocks.block = 16;
  blocks.inverse = Format::tf32;
  for (const Shape& s : {shape(1, 1024, 2, 128, 128), shape(2, 512, 1, 64, 64), shape(1, 320, 2, 64, 128)})
    for (const Case& c : problem().cases) {
      if (c.applies && !c.applies(s)) continue;
      SCOPED_TRACE(c.name + " " + s.text());
      Tensors t = drawn(c, s);
      const Expected e = t.expected();
      for (const auto& recipe : {rounded, blocks}) {
        t.answer(kernel(recipe));
        EXPECT_LE(t.judge(c, e).worst, 0.62);
      }
    }
}

/// Longer histories than the tiny deck has room for.
TEST(KdaBounds, CutHistoriesAreSeen) {
  const Shape s = shape(1, 2048, 1, 64, 64);
  for (const std::string_view name : {"long_memory", "fade"}) {
    const Case& c = the_case(name);
    Tensors t = drawn(c, s);
    const Expected e = t.expected();
    for (const std::string_view history : {"history_1", "history_2", "history_4", "history_8", "history_16"}) {
      ASSERT_TRUE(mutant(history).applies(s));
      t.answer(mutant(history).run);
      EXPECT_GE(t.judge(c, e).worst, 2) << name << " " << history;
    }
  }
  EXPECT_FALSE(mutant("history_16").applies(shape(1, 1024, 1, 64, 64)));
  const Case& longest = the_case("longest_memory");
  EXPECT_FALSE(longest.applies(s));
  EXPECT_TRUE(longest.applies(shape(1, 2112, 1, 64, 64)));
  EXPECT_FALSE(the_case("long_memory").applies(shape(1, 2112, 1, 64, 64)));
}

// ---- the data

TEST(KdaCases, StayInTheDomain) {
  const Shape s = shape(1, 512, 3, 64, 128);
  for (const Case& c : problem().cases) {
    if (c.applies && !c.applies(s)) continue;
    SCOPED_TRACE(c.name);
    Tensors t = drawn(c, s);
    if (c.change)
      for (int step = 1; step < c.calls; ++step) c.change(key(s, c.name), step, t.inputs(), {});
    EXPECT_GE(*std::min_element(t.g.begin(), t.g.end()), -8);
    EXPECT_LE(*std::max_element(t.g.begin(), t.g.end()), 0.5f);
    for (const std::uint16_t beta : t.beta) {
      ASSERT_GE(from_bf16(beta), 0);
      ASSERT_LE(from_bf16(beta), 1);
    }
    for (std::size_t row = 0; row < t.beta.size(); ++row) {
      float squares = 0;
      for (std::size_t d = 0; d < 64; ++d) squares += from_bf16(t.k[row * 64 + d]) * from_bf16(t.k[row * 64 + d]);
      ASSERT_LE(squares, 9);
    }
    const Expected e = t.expected();
    for (const double value : e.outputs[0]) ASSERT_TRUE(std::isfinite(value));
  }
}

double cosine(const Tensors& t, std::int64_t chain, std::int64_t a, std::int64_t b) {
  double products = 0;
  double squares_a = 0;
  double squares_b = 0;
  for (std::int64_t d = 0; d < t.size.key_width; ++d) {
    const double x = from_bf16(t.k[index(t.size.row(chain, a) * t.size.key_width + d)]);
    const double y = from_bf16(t.k[index(t.size.row(chain, b) * t.size.key_width + d)]);
    products += x * y;
    squares_a += x * x;
    squares_b += y * y;
  }
  return products / std::sqrt(squares_a * squares_b);
}

TEST(KdaCases, CorrelatedKeysAgreeWithinTheirChunk) {
  const Shape s = shape(1, 256, 2, 128, 64);
  Tensors t = drawn(the_case("correlated_50"), s);
  double within = 0;
  double across = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    within += cosine(t, 1, 64 + i, 64 + (i + 1) % 64);
    across += cosine(t, 1, i, 64 + i);
  }
  EXPECT_NEAR(within / 64, 0.5, 0.05);
  EXPECT_NEAR(across / 64, 0, 0.1);
}

TEST(KdaCases, LongMemoryWritesThroughOneChannelAChunk) {
  Tensors t = drawn(the_case("long_memory"), shape(1, 512, 1, 64, 64));
  for (std::int64_t token = 0; token < 512; ++token)
    for (std::int64_t d = 0; d < 32; ++d)
      ASSERT_EQ(std::abs(from_bf16(t.k[index(token * 64 + d)])), d == token / 64 ? 0.125f : 0) << token << " " << d;
}

TEST(KdaCases, FadingGatesLieHalfWayBetweenBf16Numbers) {
  for (const std::int64_t tokens : {128, 512, 1024, 2048, 4096, 4160}) {
    Tensors t = drawn(the_case("fade"), shape(1, tokens, 1, 64, 64));
    const float gate = t.g[0];
    EXPECT_TRUE(std::all_of(t.g.begin(), t.g.end(), [&](float g) { return g == gate; }));
    const float down = float_of_bits(bits_of(gate) & 0xffff0000u);
    EXPECT_EQ(bits_of(gate) & 0xffffu, 0x8000u);
    EXPECT_NEAR(gate / down - 1, 0x1p-8, 1e-6);
    EXPECT_GE(-gate * static_cast<float>(tokens), 24);
    EXPECT_LE(-gate * static_cast<float>(tokens), 49);
  }
}

TEST(KdaCases, ThePublicPropertyCaseIsAsPublished) {
  Tensors t = drawn(the_case("property_canonical"), shape(1, 1024, 1, 128, 128));
  EXPECT_EQ(from_bf16(t.beta[0]), from_bf16(to_bf16(0.8f)));
  EXPECT_EQ(t.g[77], -0.003f);
  EXPECT_EQ(std::abs(from_bf16(t.k[200])), from_bf16(to_bf16(0.04f)));
  EXPECT_EQ(from_bf16(t.k[200]), -from_bf16(t.k[201]));             // channels alternate
  EXPECT_EQ(from_bf16(t.k[200]), -from_bf16(t.k[200 + 64 * 128]));  // and chunks
  EXPECT_NEAR(from_bf16(t.k[0]), 0.002, 1e-5);
  const std::size_t split = 8 * 64 * 128;
  EXPECT_TRUE(std::all_of(t.q.begin(), t.q.begin() + split, [](std::uint16_t x) { return x == 0; }));
  EXPECT_TRUE(std::all_of(t.v.begin() + split, t.v.end(), [](std::uint16_t x) { return x == 0; }));
  const Expected e = t.expected();
  double rms = 0;
  for (const double value : e.outputs[0]) rms += value * value;
  EXPECT_NEAR(std::sqrt(rms / static_cast<double>(e.outputs[0].size())), 0.0015, 0.0004);
}

TEST(KdaCases, AmplitudesAlternate) {
  Tensors t = drawn(the_case("mixed_blocks"), shape(1, 512, 2, 64, 64));
  std::vector<float> largest(4);
  for (std::size_t i = 0; i < t.v.size(); ++i)
    largest[i / (128 * 2 * 64)] = std::max(largest[i / (128 * 2 * 64)], std::abs(from_bf16(t.v[i])));
  for (std::size_t b = 0; b + 1 < 4; ++b)
    EXPECT_GE(std::max(largest[b], largest[b + 1]), 12 * std::min(largest[b], largest[b + 1]));
}

/// Each step of in_place alters one input, and the answer to the call before is wrong by more than a factor of two.
TEST(KdaCases, EveryChangeInPlaceMatters) {
  const Case& c = the_case("in_place");
  for (const Shape& s : {shape(1, 512, 2, 64, 64), shape(2, 1024, 1, 128, 128)})
    for (int trial = 0; trial < 8; ++trial) {
      Tensors t = drawn(c, s, trial);
      for (int step = 1; step < c.calls; ++step) {
        SCOPED_TRACE(testing::Message() << s.text() << " trial " << trial << " step " << step);
        const Tensors before = t;
        const Expected former = t.expected();
        for (std::size_t i = 0; i < t.o.size(); ++i) t.o[i] = to_bf16(static_cast<float>(former.outputs[0][i]));
        c.change(key(s, c.name, trial), step, t.inputs(), former);
        const bool changed[] = {t.q != before.q, t.k != before.k, t.v != before.v, t.g != before.g,
                                t.beta != before.beta};
        for (int input = 1; input <= 5; ++input) EXPECT_EQ(changed[input - 1], input == step);
        EXPECT_GE(t.judge(c, t.expected()).worst, 2);
      }
    }
}

}  // namespace
}  // namespace kbh::kda
