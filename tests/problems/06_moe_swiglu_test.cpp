#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <kbh/numbers.hpp>

#include "problem/registry.hpp"
#include "problems/06_moe_swiglu/data.hpp"

namespace kbh::moe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const Problem& problem() { return find_problem("06_moe_swiglu"); }

Shape shape(std::int64_t tokens, std::int64_t width, std::int64_t columns, std::int64_t experts, std::int64_t copies) {
  return {{{"T_total", tokens}, {"H", width}, {"I", columns}, {"E", experts}, {"K", copies}}};
}

const std::vector<Shape> kPublic = {shape(32768, 4096, 1536, 128, 8), shape(4096, 2048, 1024, 64, 4),
                                    shape(16384, 2048, 4096, 64, 8)};
const Shape kSmall = shape(67, 40, 24, 5, 3);

DrawKey key(const Shape& s, std::string_view case_name, int trial = 0) {
  return {"0123456789abcdef", "06_moe_swiglu", 1, s, std::string(case_name), trial};
}

const Case& case_called(std::string_view name) {
  const Case* found = problem().find_case(name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

/// All tensors of one draw.
struct Tensors {
  Shape of;
  Sizes size;
  std::vector<TensorSpec> specs;
  std::vector<std::vector<std::byte>> bytes;

  explicit Tensors(const Shape& s) : of(s), size(s), specs(problem().tensors(s)) {
    for (const TensorSpec& spec : specs) bytes.emplace_back(spec.bytes());
  }
  Tensors(const Shape& s, const Case& c, int trial = 0) : Tensors(s) {
    const DrawKey drawn = key(s, c.name, trial);
    const std::vector<TensorView> all = views();
    c.fill_state(drawn, std::span(all).first(2));
    c.fill(drawn, std::span(all).first(4));
  }

  std::vector<TensorView> views() {
    std::vector<TensorView> all;
    for (std::size_t i = 0; i < specs.size(); ++i) all.push_back({&specs[i], bytes[i].data()});
    return all;
  }
  std::vector<TensorView> given() {
    const std::vector<TensorView> all = views();
    return {all.begin(), all.begin() + 4};
  }
  std::vector<ConstTensorView> const_given() {
    const std::vector<TensorView> all = given();
    return {all.begin(), all.end()};
  }
  std::span<std::uint16_t> bf16(std::size_t i) { return views()[i].as<std::uint16_t>(); }
  std::span<std::int32_t> offsets() { return views()[3].as<std::int32_t>(); }
  std::span<std::uint16_t> out() { return bf16(4); }

  Expected expected() { return oracle(of, const_given()); }
  void answer_honestly() {
    const std::vector<TensorView> outputs = {views()[4]};
    honest(of, const_given(), outputs);
  }
  Comparison judge(const Case& c, const Expected& against) {
    const std::vector<ConstTensorView> outputs = {views()[4]};
    return compare(of, c, const_given(), against, outputs);
  }
  std::vector<std::int64_t> counts() {
    std::vector<std::int64_t> all;
    for (std::size_t e = 0; e + 1 < offsets().size(); ++e) all.push_back(offsets()[e + 1] - offsets()[e]);
    return all;
  }
};

std::vector<double> widened(std::span<const std::uint16_t> from) {
  std::vector<double> to;
  for (const std::uint16_t x : from) to.push_back(static_cast<double>(from_bf16(x)));
  return to;
}

/// The definition, term by term: `activation` gets an element's place and its two sums.
template <typename Activation>
void by_definition(Tensors& t, Activation activation) {
  const std::vector<double> gates = widened(t.bf16(0));
  const std::vector<double> ups = widened(t.bf16(1));
  const std::vector<double> hidden = widened(t.bf16(2));
  const std::size_t columns = index(t.size.columns);
  for (std::int64_t e = 0; e < t.size.experts; ++e)
    for (std::int64_t r = t.offsets()[index(e)]; r < t.offsets()[index(e + 1)]; ++r) {
      std::vector<double> gate(columns);
      std::vector<double> up(columns);
      for (std::int64_t k = 0; k < t.size.width; ++k)
        for (std::size_t i = 0; i < columns; ++i) {
          gate[i] += hidden[index(r * t.size.width + k)] * gates[index(e * t.size.width + k) * columns + i];
          up[i] += hidden[index(r * t.size.width + k)] * ups[index(e * t.size.width + k) * columns + i];
        }
      for (std::size_t i = 0; i < columns; ++i) activation(index(r) * columns + i, gate[i], up[i]);
    }
}

bool applies(const Case& c, const Shape& s) { return !c.applies || c.applies(s); }

float through_bf16(double x) { return from_bf16(to_bf16(static_cast<float>(x))); }

// ---- what the problem declares

TEST(Moe, TensorsHaveTheContractsNamesAndTypes) {
  const auto specs = problem().tensors(kSmall);
  ASSERT_EQ(specs.size(), 5u);
  EXPECT_EQ(specs[0].name, "W_gate");
  EXPECT_EQ(specs[1].name, "W_up");
  EXPECT_EQ(specs[1].role, Role::state);
  EXPECT_THAT(specs[1].dims, ElementsAre(5, 40, 24));
  EXPECT_EQ(specs[2].name, "hidden");
  EXPECT_THAT(specs[2].dims, ElementsAre(201, 40));
  EXPECT_EQ(specs[3].name, "expert_offsets");
  EXPECT_EQ(specs[3].dtype, DType::i32);
  EXPECT_THAT(specs[3].dims, ElementsAre(6));
  EXPECT_EQ(specs[4].role, Role::output);
  EXPECT_THAT(specs[4].dims, ElementsAre(201, 24));
}

TEST(Moe, WorkCountsTheRoutedCopiesAndUpstreamsDoesNot) {
  const double bytes[] = {6'174'015'488, 637'534'208, 3'758'096'384};
  for (std::size_t i = 0; i < kPublic.size(); ++i) {
    const Work work = problem().work(kPublic[i]);
    EXPECT_EQ(work.upstream_bytes, bytes[i]);
    EXPECT_EQ(work.min_bytes, bytes[i] + 4 * static_cast<double>(kPublic[i]["E"] + 1));
    EXPECT_EQ(work.flops, work.upstream_flops * static_cast<double>(kPublic[i]["K"]));
  }
  EXPECT_EQ(problem().work(kPublic[0]).flops, 6'597'069'766'656);
  EXPECT_EQ(problem().work(kPublic[0]).flops_dtype, DType::bf16);
}

TEST(Moe, ShapesOutsideTheDomainAreNamed) {
  const auto wrong = [](const Shape& s) { return problem().outside_domain(s).value_or("inside"); };
  for (const Shape& s : kPublic) EXPECT_EQ(wrong(s), "inside");
  EXPECT_EQ(wrong(shape(1, 8, 8, 1, 1)), "inside");
  EXPECT_EQ(wrong(shape(0, 8, 8, 1, 1)), "T_total is 0, expected 1 to 131072");
  EXPECT_EQ(wrong(shape(1, 12, 8, 1, 1)), "H is 12, expected a multiple of 8 from 8 to 8192");
  EXPECT_EQ(wrong(shape(1, 8, 0, 1, 1)), "I is 0, expected a multiple of 8 from 8 to 8192");
  EXPECT_EQ(wrong(shape(1, 8, 8, 513, 1)), "E is 513, expected 1 to 512");
  EXPECT_EQ(wrong(shape(1, 8, 8, 4, 5)), "K is 5, expected 1 to 4");
  EXPECT_EQ(wrong(shape(1, 8, 8, 100, 17)), "K is 17, expected 1 to 16");
  EXPECT_EQ(wrong(shape(131072, 8, 8, 9, 9)), "T_total * K is 1179648, expected 1 to 1048576");
  EXPECT_THAT(wrong(shape(131072, 8192, 8, 8, 8)), HasSubstr("T_total * K * max(H, I) is 8589934592"));
  EXPECT_THAT(wrong(shape(1, 8192, 8192, 64, 1)), HasSubstr("E * H * I is 4294967296"));
}

TEST(Moe, NeighboursAreSmallAndLeaveNoRoundNumber) {
  std::vector<Shape> listed = kPublic;
  listed.insert(listed.end(), {kSmall, shape(1, 8, 8, 1, 1), shape(1024, 128, 48, 128, 8)});
  for (const Shape& s : listed) {
    SCOPED_TRACE(s.text());
    std::set<std::string> seen = {s.text()};
    double flops = 0;
    for (const Shape& beside : problem().neighbours(s)) {
      EXPECT_TRUE(seen.insert(beside.text()).second) << beside.text();
      EXPECT_EQ(problem().outside_domain(beside), std::nullopt) << beside.text();
      flops += problem().work(beside).flops;
    }
    EXPECT_GE(seen.size(), 4u);
    if (s["T_total"] >= 1000) {
      EXPECT_LT(flops, problem().work(s).flops);
      const auto neighbours = problem().neighbours(s);
      for (const auto* dim : {"H", "I"})
        for (const std::int64_t step : {-8, 8})
          EXPECT_TRUE(std::any_of(neighbours.begin(), neighbours.end(),
                                  [&](const Shape& b) { return b[dim] == s[dim] + step; }));
    }
  }
}

// ---- the oracle

TEST(MoeOracle, IsTheDefinitionInEveryCase) {
  for (const Shape& s : {kSmall, shape(1, 8, 8, 1, 1), shape(5, 16, 8, 2, 2)})
    for (const Case& c : problem().cases) {
      if (!applies(c, s)) continue;
      SCOPED_TRACE(c.name + " on " + s.text());
      Tensors t(s, c);
      const Expected expected = t.expected();
      double squares = 0;
      double errors = 0;
      by_definition(t, [&](std::size_t at, double gate, double up) {
        const double out = gate / (1 + std::exp(-gate)) * up;
        squares += out * out;
        errors += std::pow(expected.outputs[0][at] - out, 2);
        EXPECT_TRUE(std::isfinite(expected.outputs[0][at]));
      });
      EXPECT_GT(squares, 0);
      EXPECT_LE(errors, 1e-20 * squares);
    }
}

TEST(MoeOracle, ScalesAreTheRowsRmsAboveAFloorOfTheTensors) {
  Tensors t(kSmall, case_called("mixed_rows"));
  const Expected expected = t.expected();
  const auto rms = [&](std::size_t begin, std::size_t length) {
    double squares = 0;
    for (std::size_t i = begin; i < begin + length; ++i) squares += std::pow(expected.outputs[0][i], 2);
    return std::sqrt(squares / static_cast<double>(length));
  };
  const double floor = rms(0, expected.outputs[0].size()) / 16;
  for (std::size_t r = 0; r < 201; ++r)
    EXPECT_NEAR(expected.scales[0][r * 24 + 7], std::max(rms(r * 24, 24), floor), 1e-12 * floor) << r;
}

TEST(MoeOracle, RefreshIsAFullOracle) {
  for (const Shape& s : {kSmall, shape(1, 8, 8, 3, 2), shape(64, 128, 48, 128, 8)}) {
    SCOPED_TRACE(s.text());
    Tensors t(s, problem().nominal());
    Expected expected = t.expected();
    for (int step = 1; step < 4; ++step) {
      const auto before = t.bytes;
      refresh(key(s, "nominal", step), t.given(), expected);
      EXPECT_EQ(t.bytes[0], before[0]);
      EXPECT_EQ(t.bytes[1], before[1]);
      EXPECT_NE(t.bytes[2], before[2]);
      EXPECT_EQ(t.bytes[3], before[3]);
      const Expected whole = t.expected();
      EXPECT_EQ(expected.outputs, whole.outputs);
      EXPECT_EQ(expected.scales, whole.scales);
    }
  }
}

TEST(MoeOracle, AFaultInItOrInTheReferenceIsSeen) {
  const Case& c = problem().nominal();
  Tensors t(kSmall, c);
  t.answer_honestly();
  EXPECT_TRUE(t.judge(c, t.expected()).pass);

  std::vector<ConstTensorView> swapped = t.const_given();
  std::swap(swapped[0].data, swapped[1].data);
  EXPECT_FALSE(t.judge(c, oracle(t.of, swapped)).pass);

  std::uint16_t& weight = t.bf16(1)[index((2 * 40 + 39) * 24 + 23)];  // the last of expert 2
  const std::uint16_t right = weight;
  weight = to_bf16(1.0f);
  EXPECT_FALSE(t.judge(c, t.expected()).pass);
  weight = right;

  ++t.offsets()[3];
  EXPECT_FALSE(t.judge(c, t.expected()).pass);
}

TEST(MoeOracle, AWrongElementIsNamedWithoutItsValue) {
  const Case& c = problem().nominal();
  Tensors t(kSmall, c);
  t.answer_honestly();
  t.out()[index(7 * 24 + 5)] = to_bf16(1.0f);
  const Comparison judged = t.judge(c, t.expected());
  EXPECT_EQ(judged.bad, 1);
  ASSERT_TRUE(judged.mismatch);
  EXPECT_THAT(judged.mismatch->index, ElementsAre(7, 5));
  EXPECT_EQ(judged.mismatch->got, "1");
  EXPECT_THAT(judged.mismatch->rule, HasSubstr("2^-6 of the element"));
}

// ---- the tolerance

/// Everything rounded to bf16 on the way, as the public reference does it.
TEST(MoeTolerance, TakesBf16GateUpAndSilu) {
  for (const Shape& s : {shape(160, 48, 32, 8, 4), kSmall})
    for (const Case& c : problem().cases) {
      if (!applies(c, s)) continue;
      SCOPED_TRACE(c.name + " on " + s.text());
      Tensors t(s, c);
      by_definition(t, [&](std::size_t at, double gate, double up) {
        const float g = through_bf16(gate);
        const float silu = through_bf16(static_cast<double>(g) / (1 + std::exp(static_cast<double>(-g))));
        t.out()[at] = to_bf16(silu * through_bf16(up));
      });
      const Comparison judged = t.judge(c, t.expected());
      EXPECT_TRUE(judged.pass) << (judged.mismatch ? judged.mismatch->rule : "");
      EXPECT_LT(judged.worst, 0.9);
    }
}

/// A sigmoid that errs by 2^-11 as tanh.approx does, in the worst direction.
TEST(MoeTolerance, TakesAnApproximateSigmoid) {
  const Shape s = shape(160, 48, 32, 8, 4);
  for (const Case& c : problem().cases) {
    SCOPED_TRACE(c.name);
    Tensors t(s, c);
    by_definition(t, [&](std::size_t at, double gate, double up) {
      const double half = std::tanh(gate / 2) * (at % 2 == 0 ? 1 + 0x1p-11 : 1 - 0x1p-11);
      t.out()[at] = to_bf16(static_cast<float>(gate * (0.5 + 0.5 * std::clamp(half, -1.0, 1.0)) * up));
    });
    const Comparison judged = t.judge(c, t.expected());
    EXPECT_TRUE(judged.pass) << (judged.mismatch ? judged.mismatch->rule : "");
  }
}

TEST(MoeTolerance, IntegersLeaveOneRounding) {
  const Case& c = case_called("integers");
  for (const Shape& s : {kSmall, shape(160, 48, 32, 8, 4), shape(16, 512, 64, 4, 2)}) {
    SCOPED_TRACE(s.text());
    Tensors t(s, c);
    by_definition(t, [&](std::size_t at, double gate, double up) {
      EXPECT_EQ(gate, std::round(gate));
      EXPECT_EQ(up, std::round(up));
      EXPECT_EQ(static_cast<double>(through_bf16(gate)), gate);
      EXPECT_EQ(static_cast<double>(through_bf16(up)), up);
      const auto g = static_cast<float>(gate);
      EXPECT_EQ(g / (1 + std::exp(-g)), g);
      t.out()[at] = to_bf16(g * static_cast<float>(up));
    });
    const Comparison judged = t.judge(c, t.expected());
    EXPECT_TRUE(judged.pass);
    EXPECT_LE(judged.worst, 0.5);
  }
}

// ---- the data

TEST(MoeRouting, CountsSumToTheRows) {
  Random random(7);
  for (const std::int64_t experts : {2, 3, 8, 64})
    for (const std::int64_t rows : {1, 5, 640, 4096}) {
      const std::vector<std::int64_t> runs = random_runs(experts, random);
      const std::int64_t sizes[] = {63, 64, 65};
      for (const Counts& counts :
           {balanced(rows, experts), ragged(rows, experts, all_experts(experts), random),
            ragged(rows, experts, runs, random), one_row_each(rows, experts, random),
            sized(rows, experts, sizes, random), zipf(rows, experts, random), donated(rows, experts, 0, 1, 129)}) {
        EXPECT_EQ(std::ssize(counts), experts);
        EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), rows);
        EXPECT_GE(*std::min_element(counts.begin(), counts.end()), 0);
      }
    }
}

TEST(MoeRouting, IsThatOfThePublicCases) {
  EXPECT_THAT(balanced(10, 4), ElementsAre(3, 3, 2, 2));
  const Counts counts = donated(16384, 64, 0, 1, 129);  // the public case: 385 rows pass the average + 128
  EXPECT_EQ(counts[0], 385);
  EXPECT_EQ(counts[1], 127);
  EXPECT_EQ(counts[2], 256);
  EXPECT_THAT(donated(12, 4, 0, 1, 129), ElementsAre(9, 1, 1, 1));  // each keeps one
}

TEST(MoeRouting, EmptyExpertsStandWhereTheCaseSays) {
  const Shape s = shape(160, 48, 32, 8, 4);
  for (int trial = 0; trial < 5; ++trial) {
    EXPECT_EQ(Tensors(s, case_called("empty_first"), trial).counts().front(), 0);
    EXPECT_EQ(Tensors(s, case_called("empty_last"), trial).counts().back(), 0);
    EXPECT_THAT(Tensors(s, case_called("empty_middle"), trial).counts(), Contains(0));
    EXPECT_THAT(Tensors(s, case_called("one_owner"), trial).counts(), Contains(640));
    EXPECT_THAT(Tensors(s, case_called("one_row_each"), trial).counts(), Contains(1));
  }
}

TEST(MoeCases, TileEdgesComeUp) {
  const Shape s = shape(1024, 8, 8, 128, 8);
  Tensors t(s, case_called("tile_edges"));
  for (const std::int64_t rows : {63, 64, 65, 127, 128, 129, 255, 256, 257}) EXPECT_THAT(t.counts(), Contains(rows));
}

TEST(MoeCases, TermsCancelWhereTheCaseSaysSo) {
  // The largest partial sum is far above the result, and the two weights are equal.
  Tensors t(kSmall, case_called("cancelling"));
  std::vector<std::int64_t> loud;
  for (std::int64_t k = 0; k < 40; ++k)
    if (std::abs(from_bf16(t.bf16(2)[index(k)])) > 10) loud.push_back(k);
  ASSERT_EQ(loud.size(), 2u);
  EXPECT_LT(loud[0], 10);
  EXPECT_GE(loud[1], 30);
  EXPECT_EQ(from_bf16(t.bf16(2)[index(loud[0])]), -from_bf16(t.bf16(2)[index(loud[1])]));
  for (std::int64_t e = 0; e < 5; ++e)
    for (std::size_t w = 0; w < 2; ++w)
      for (std::int64_t i = 0; i < 24; ++i)
        EXPECT_EQ(t.bf16(w)[index((e * 40 + loud[0]) * 24 + i)], t.bf16(w)[index((e * 40 + loud[1]) * 24 + i)]);
}

TEST(MoeCases, ABoundaryMovesAndNothingElse) {
  const Case& c = case_called("offsets_in_place");
  Tensors t(kSmall, c);
  for (int step = 1; step < 20; ++step) {
    const std::vector<std::int32_t> before(t.offsets().begin(), t.offsets().end());
    const auto hidden = t.bytes[2];
    c.change(key(kSmall, c.name), step, t.given(), {});
    EXPECT_EQ(t.bytes[2], hidden);
    EXPECT_TRUE(std::is_sorted(t.offsets().begin(), t.offsets().end()));
    EXPECT_EQ(t.offsets().front(), 0);
    EXPECT_EQ(t.offsets().back(), 201);
    int moved = 0;
    for (std::size_t e = 0; e < before.size(); ++e) moved += before[e] != t.offsets()[e] ? 1 : 0;
    EXPECT_EQ(moved, 1);
  }
}

TEST(MoeCases, OneToSevenElementsChange) {
  const Case& c = case_called("elements_in_place");
  Tensors t(kSmall, c);
  for (int step = 1; step < 20; ++step) {
    const std::vector<std::uint16_t> before(t.bf16(2).begin(), t.bf16(2).end());
    c.change(key(kSmall, c.name), step, t.given(), {});
    int changed = 0;
    for (std::size_t i = 0; i < before.size(); ++i) changed += before[i] != t.bf16(2)[i] ? 1 : 0;
    EXPECT_GE(changed, 1);
    EXPECT_LE(changed, 7);
  }
}

}  // namespace
}  // namespace kbh::moe
