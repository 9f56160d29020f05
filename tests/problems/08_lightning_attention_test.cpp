#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <kbh/numbers.hpp>

#include "deck/deck.hpp"
#include "problem/draw.hpp"
#include "problem/registry.hpp"
#include "problems/08_lightning_attention/fills.hpp"

namespace kbh::lightning {
namespace {

const Problem& problem() { return find_problem("08"); }

Shape shape(std::int64_t sequences, std::int64_t heads) { return {{{"B", sequences}, {"H", heads}}}; }

DrawKey key(const Shape& s, std::string_view case_name, int trial = 0) {
  return {"0123456789abcdef", "08_lightning_attention", 1, s, std::string(case_name), trial};
}

/// All tensors of one shape, each 0 at first.
struct Tensors {
  Shape of;
  std::vector<TensorSpec> specs;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;

  explicit Tensors(const Shape& s) : of(s), specs(problem().tensors(s)) {
    for (const TensorSpec& spec : specs) bytes.emplace_back(spec.bytes());
    for (std::size_t i = 0; i < specs.size(); ++i)
      (specs[i].role == Role::output ? outputs : inputs).push_back({&specs[i], bytes[i].data()});
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  [[nodiscard]] std::vector<ConstTensorView> given() const { return {inputs.begin(), inputs.end()}; }
  [[nodiscard]] std::span<std::uint16_t> bf16(std::size_t i) const { return inputs[i].as<std::uint16_t>(); }
  [[nodiscard]] std::span<float> fp32(std::size_t i) const { return inputs[i].as<float>(); }
  [[nodiscard]] std::span<float> s_next() const { return outputs[kSNext].as<float>(); }
  [[nodiscard]] std::span<std::uint16_t> o() const { return outputs[kO].as<std::uint16_t>(); }

  void draw(const Case& c, int trial = 0) { c.fill(key(of, c.name, trial), inputs); }
  [[nodiscard]] Expected expected() const { return oracle(of, given()); }
  void answer_honestly() { problem().honest(of, given(), outputs, {}); }
  [[nodiscard]] Comparison judge(const Case& c) const {
    return compare(of, c, given(), expected(), std::vector<ConstTensorView>(outputs.begin(), outputs.end()));
  }
};

const Case& case_called(std::string_view name) {
  const Case* found = problem().find_case(name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

// ---- what the problem declares

TEST(Lightning, EveryNameOfTheProblemFindsIt) {
  for (const char* name : {"08_metal_lightning_attn", "lightning", "lightning_attention", "8"})
    EXPECT_EQ(find_problem(name).id, "08_lightning_attention");
}

TEST(Lightning, TensorsComeInTheContractsOrder) {
  const auto specs = problem().tensors(shape(3, 5));
  std::vector<std::string> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  EXPECT_THAT(names, testing::ElementsAre("q", "k", "v", "s", "decay", "s_next", "o"));
  EXPECT_EQ(specs[3].dims, (std::vector<std::int64_t>{3, 5, 128, 128}));
  EXPECT_EQ(specs[4].dims, (std::vector<std::int64_t>{5}));
  EXPECT_EQ(specs[5].dims, specs[3].dims);
  EXPECT_EQ(specs[6].dtype, DType::bf16);
  EXPECT_FALSE(problem().has_state());
}

TEST(Lightning, TheMemoryIsReadAndWrittenOnce) {
  const Work work = problem().work(shape(4, 64));
  EXPECT_EQ(work.min_bytes, 256 * (2 * 65536 + 4 * 256) + 64 * 4);
  EXPECT_EQ(work.flops, 5 * 256 * 16384.0);
}

TEST(Lightning, ShapesOutsideTheDomainAreNamed) {
  const auto wrong = [](std::int64_t b, std::int64_t h) {
    return problem().outside_domain(shape(b, h)).value_or("inside");
  };
  EXPECT_EQ(wrong(1, 1), "inside");
  EXPECT_EQ(wrong(64, 64), "inside");
  EXPECT_EQ(wrong(4096, 4), "inside");
  EXPECT_EQ(wrong(0, 8), "B is 0, expected 1 to 4096");
  EXPECT_EQ(wrong(1, 1025), "H is 1025, expected 1 to 1024");
  EXPECT_EQ(wrong(4096, 5), "B * H is 20480, expected at most 16384");
}

TEST(Lightning, NeighboursFitNoGroupAndNoPowerOfTwo) {
  for (const Shape& listed : {shape(1, 64), shape(64, 64), shape(8, 32), shape(2, 4), shape(1, 1), shape(1024, 16)}) {
    SCOPED_TRACE(listed.text());
    bool odd = false;
    bool no_power = false;
    std::set<std::string> seen = {listed.text()};
    for (const Shape& beside : problem().neighbours(listed)) {
      EXPECT_TRUE(seen.insert(beside.text()).second) << beside.text();
      EXPECT_EQ(problem().outside_domain(beside), std::nullopt) << beside.text();
      EXPECT_LE(Sizes(beside).memories(), 40);
      odd |= Sizes(beside).memories() % 2 == 1 && beside["B"] > 1;
      no_power |= (beside["H"] & (beside["H"] - 1)) != 0;
    }
    EXPECT_TRUE(odd);
    EXPECT_TRUE(no_power);
  }
}

TEST(Lightning, TheCpuDeckMovesASixtyFourthOfTheGpuDecksBytes) {
  const Deck cpu = find_deck("cpu");
  const std::vector<Shape> gpu = {shape(1, 64), shape(4, 64), shape(16, 64), shape(64, 64), shape(8, 32)};
  const std::vector<DeckShape>& listed = cpu.shapes_of(problem());
  ASSERT_EQ(listed.size(), gpu.size());
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    EXPECT_GE(problem().work(listed[i].shape).min_bytes, problem().work(gpu[i]).min_bytes / 64);
    EXPECT_EQ(listed[i].shape["B"], gpu[i]["B"]);
  }
}

// ---- the oracle

TEST(Lightning, OneTokenByHand) {
  // Two heads. Key 2 in channel 3, value 5 in channel 7; the query reads channels 3 and 4.
  Tensors t(shape(1, 2));
  t.fp32(kDecay)[0] = 0.5f;
  t.fp32(kDecay)[1] = 0.25f;
  t.bf16(kK)[3] = to_bf16(2);
  t.bf16(kV)[7] = to_bf16(5);
  t.bf16(kQ)[3] = to_bf16(3);
  t.bf16(kQ)[4] = to_bf16(-1);
  t.fp32(kS)[3 * 128 + 7] = 8;
  t.fp32(kS)[4 * 128 + 7] = 6;
  t.fp32(kS)[4 * 128 + 9] = 4;
  t.fp32(kS)[16384 + 5] = 12;  // of the second head: fades by its own decay, is read by nobody

  const Expected e = t.expected();
  const std::vector<double>& next = e.outputs[kSNext];
  EXPECT_EQ(next[3 * 128 + 7], 0.5 * 8 + 2 * 5);
  EXPECT_EQ(next[4 * 128 + 7], 3);
  EXPECT_EQ(next[4 * 128 + 9], 2);
  EXPECT_EQ(next[16384 + 5], 3);
  EXPECT_EQ(std::count_if(next.begin(), next.end(), [](double x) { return x != 0; }), 4);
  const std::vector<double>& o = e.outputs[kO];
  EXPECT_EQ(o[7], 3 * 14 - 3);
  EXPECT_EQ(o[9], -2);
  EXPECT_EQ(std::count_if(o.begin(), o.end(), [](double x) { return x != 0; }), 2);
  EXPECT_NEAR(e.scales[kSNext][3 * 128 + 7], 4 + 10, 1e-12);
  EXPECT_NEAR(e.scales[kO][7], std::sqrt(10.0) * std::sqrt(14.0 * 14 + 3 * 3) / std::sqrt(128.0), 1e-12);
}

TEST(Lightning, ReadingTheFadedMemoryAndTheTokenApartGivesTheSame) {
  // o = decay (q s) + (q . k) v: another order of the same mathematics.
  Tensors t(shape(2, 3));
  t.draw(problem().nominal());
  const Expected e = t.expected();
  for (std::int64_t m = 0; m < 6; ++m) {
    double dot = 0;
    const auto at = [&](std::size_t i, std::int64_t c) {
      return static_cast<double>(from_bf16(t.bf16(i)[index(m * kD + c)]));
    };
    for (std::int64_t i = 0; i < kD; ++i) dot += at(kQ, i) * at(kK, i);
    for (std::int64_t j = 0; j < kD; ++j) {
      double faded = 0;
      for (std::int64_t i = 0; i < kD; ++i)
        faded += at(kQ, i) * static_cast<double>(t.fp32(kS)[index((m * kD + i) * kD + j)]);
      const double o = static_cast<double>(t.fp32(kDecay)[index(m % 3)]) * faded + dot * at(kV, j);
      EXPECT_NEAR(e.outputs[kO][index(m * kD + j)], o, 1e-12 * (1 + std::abs(dot)));
    }
  }
}

TEST(Lightning, RefreshChangesSomeMemoriesAndLeavesAFullOraclesAnswer) {
  for (const Shape& s : {shape(2, 4), shape(1, 1), shape(3, 5)}) {
    SCOPED_TRACE(s.text());
    Tensors t(s);
    t.draw(problem().nominal());
    const std::vector<float> before(t.fp32(kS).begin(), t.fp32(kS).end());
    Expected e = t.expected();
    problem().refresh(key(s, "nominal", 7), t.inputs, e);
    const Expected full = t.expected();
    EXPECT_EQ(e.outputs, full.outputs);
    EXPECT_EQ(e.scales, full.scales);
    EXPECT_FALSE(std::equal(before.begin(), before.end(), t.fp32(kS).begin()));
  }
}

TEST(Lightning, ReferenceNoticesAPlantedErrorInTheOracle) {
  Tensors t(shape(1, 2));
  t.draw(problem().nominal());
  t.answer_honestly();
  const std::vector<ConstTensorView> outputs(t.outputs.begin(), t.outputs.end());
  const Expected good = t.expected();
  EXPECT_TRUE(compare(t.of, problem().nominal(), t.given(), good, outputs).pass);
  Expected bad = good;
  bad.outputs[kSNext][12345] *= 1 + 1e-6;
  EXPECT_FALSE(compare(t.of, problem().nominal(), t.given(), bad, outputs).pass);
  bad = good;
  bad.outputs[kO][200] += 0.05 * bad.scales[kO][200] + 0.02 * std::abs(bad.outputs[kO][200]);
  EXPECT_FALSE(compare(t.of, problem().nominal(), t.given(), bad, outputs).pass);
}

// ---- the rule

TEST(Lightning, TwoRoundingsOfTheMemoryPassAndFourDoNot) {
  Tensors t(shape(1, 1));
  t.draw(problem().nominal());
  const Expected e = t.expected();
  t.answer_honestly();
  const std::size_t i = 4321;
  const double allowed = 0x1p-22 * e.scales[kSNext][i];
  t.s_next()[i] = static_cast<float>(e.outputs[kSNext][i] + 0.9 * allowed);
  EXPECT_TRUE(t.judge(problem().nominal()).pass);
  t.s_next()[i] = static_cast<float>(e.outputs[kSNext][i] + 1.2 * allowed);
  const Comparison refused = t.judge(problem().nominal());
  ASSERT_FALSE(refused.pass);
  EXPECT_EQ(refused.bad, 1);
  EXPECT_EQ(refused.mismatch->output, "s_next");
  EXPECT_EQ(refused.mismatch->index, (std::vector<std::int64_t>{0, 0, 33, 97}));
}

TEST(Lightning, NaNFailsInBothOutputs) {
  Tensors t(shape(1, 1));
  t.draw(problem().nominal());
  t.answer_honestly();
  t.s_next()[0] = std::nanf("");
  EXPECT_FALSE(t.judge(problem().nominal()).pass);
  t.answer_honestly();
  t.o()[0] = 0x7fc0;
  EXPECT_FALSE(t.judge(problem().nominal()).pass);
}

TEST(Lightning, DenormalsMayBeFlushed) {
  // Nothing is left of this memory but denormals, and the new token is as small.
  Tensors t(shape(1, 1));
  t.draw(problem().nominal());
  t.fp32(kDecay)[0] = 0x1p-120f;
  for (float& s : t.fp32(kS)) s *= 0x1p-10f;
  for (std::uint16_t& v : t.bf16(kV)) v = 0;
  t.answer_honestly();
  EXPECT_TRUE(t.judge(problem().nominal()).pass);
  std::fill(t.s_next().begin(), t.s_next().end(), 0.0f);
  Case only_elements = problem().nominal();  // of a tensor of nothing but denormals nothing is left
  only_elements.bounds.frobenius = 0;
  std::fill(t.o().begin(), t.o().end(), std::uint16_t{0});
  EXPECT_TRUE(t.judge(only_elements).pass);
}

TEST(Lightning, ExactDataLeaveOneAnswer) {
  const Case& integers = case_called("integers");
  ASSERT_TRUE(integers.bounds.exact);
  Tensors t(shape(2, 3));
  for (int trial = 0; trial < 3; ++trial) {
    t.draw(integers, trial);
    t.answer_honestly();
    EXPECT_TRUE(t.judge(integers).pass);
    const Expected e = t.expected();
    for (const double o : e.outputs[kO]) EXPECT_LT(std::abs(o), 0x1p24);
    for (const double s : e.outputs[kSNext]) EXPECT_EQ(s, static_cast<double>(static_cast<float>(s)));
    t.o()[5] ^= 1u;
    EXPECT_FALSE(t.judge(integers).pass);
  }
}

// ---- the data

TEST(Lightning, NominalDecaysAreThePublishedSlopes) {
  for (const std::int64_t heads : {1, 32, 64}) {
    Tensors t(shape(1, heads));
    t.draw(problem().nominal());
    for (std::int64_t h = 0; h < heads; ++h) {
      const double slope = std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads));
      EXPECT_NEAR(static_cast<double>(t.fp32(kDecay)[index(h)]), std::exp(-slope), 1e-6);
    }
  }
}

TEST(Lightning, DecaysStayInTheDomain) {
  for (const Case& c : problem().cases) {
    Tensors t(shape(2, 4));
    t.draw(c, 3);
    for (const float decay : t.fp32(kDecay)) {
      EXPECT_GT(decay, 0) << c.name;
      EXPECT_LE(decay, 1) << c.name;
    }
    for (const float s : t.fp32(kS)) ASSERT_LE(std::abs(s), 0x1p119f) << c.name;
  }
}

TEST(Lightning, OrthogonalQueriesDoNotSeeTheToken) {
  Tensors t(shape(1, 2));
  t.draw(case_called("orthogonal_query"));
  for (std::size_t m = 0; m < 2; ++m) {
    float dot = 0;
    float size = 0;
    for (std::size_t i = 128 * m; i < 128 * (m + 1); ++i) {
      dot += from_bf16(t.bf16(kQ)[i]) * from_bf16(t.bf16(kK)[i]);
      size += std::abs(from_bf16(t.bf16(kQ)[i]));
    }
    EXPECT_NEAR(dot, 0, 1e-4);
    EXPECT_GT(size, 50);
  }
}

TEST(Lightning, CancellingTokensLeaveOnePercent) {
  Tensors t(shape(1, 2));
  t.draw(case_called("cancelling"));
  const Expected e = t.expected();
  double left = 0;
  double terms = 0;
  for (std::size_t i = 0; i < e.outputs[kSNext].size(); ++i) {
    left += std::abs(e.outputs[kSNext][i]);
    terms += e.scales[kSNext][i] / 2;
  }
  EXPECT_GT(left / terms, 0.005);
  EXPECT_LT(left / terms, 0.012);
}

TEST(Lightning, StrongDecaysLeaveSomethingThatMatters) {
  Tensors t(shape(2, 4));
  t.draw(case_called("strong_decay"));
  int large = 0;
  for (std::size_t m = 0; m < 8; ++m) {
    const double decay = static_cast<double>(t.fp32(kDecay)[m % 4]);
    EXPECT_LT(decay, std::exp(-4.9));
    EXPECT_GT(decay, std::exp(-80.1));
    double rms = 0;
    for (std::size_t i = 0; i < 16384; ++i) {
      const double faded = decay * static_cast<double>(t.fp32(kS)[m * 16384 + i]);
      rms += faded * faded / 16384;
    }
    large += std::abs(std::sqrt(rms) - 1) < 0.05 ? 1 : 0;
  }
  EXPECT_GE(large, 2);
}

TEST(Lightning, AChainHandsTheMemoryOn) {
  const Case& chained = case_called("chained");
  Tensors t(shape(1, 2));
  t.draw(chained);
  const std::vector<std::uint16_t> query(t.bf16(kQ).begin(), t.bf16(kQ).end());
  const Expected former = t.expected();
  chained.change(key(t.of, "chained"), 1, t.inputs, former);
  for (std::size_t i = 0; i < former.outputs[kSNext].size(); ++i)
    ASSERT_EQ(t.fp32(kS)[i], static_cast<float>(former.outputs[kSNext][i]));
  EXPECT_FALSE(std::equal(query.begin(), query.end(), t.bf16(kQ).begin()));
  EXPECT_EQ(chained.calls, 16);
}

TEST(Lightning, InPlaceChangesEveryInputOnceAlone) {
  const Case& in_place = case_called("in_place");
  Tensors t(shape(2, 4));
  t.draw(in_place);
  for (int step = 1; step < in_place.calls; ++step) {
    const auto before = t.bytes;
    in_place.change(key(t.of, "in_place"), step, t.inputs, {});
    for (std::size_t i = 0; i < t.inputs.size(); ++i) {
      const bool changed = t.bytes[i] != before[i];
      EXPECT_EQ(changed, step == 1 || static_cast<std::size_t>(step) == i + 2) << "step " << step << " input " << i;
    }
  }
  EXPECT_EQ(in_place.calls, 7);
}

TEST(Lightning, MixedAmplitudesReachBothEnds) {
  Tensors t(shape(2, 4));
  t.draw(case_called("mixed_memories"));
  std::vector<double> rms(8);
  for (std::size_t i = 0; i < t.fp32(kS).size(); ++i) {
    const double s = static_cast<double>(t.fp32(kS)[i]);
    rms[i / 16384] += s * s / 16384;
  }
  EXPECT_NEAR(std::sqrt(*std::max_element(rms.begin(), rms.end())), 64, 3);
  EXPECT_NEAR(std::sqrt(*std::min_element(rms.begin(), rms.end())), 1.0 / 64, 1e-3);
}

}  // namespace
}  // namespace kbh::lightning
