#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include "problem/draw.hpp"
#include "problem/registry.hpp"
#include "problems/05_topk/fills.hpp"
#include "problems/05_topk/selection.hpp"
#include "problems/05_topk/topk.hpp"

namespace kbh::topk {
namespace {

using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Shape shape(std::int64_t batch, std::int64_t n, std::int64_t k) { return {{{"batch", batch}, {"n", n}, {"k", k}}}; }

const Problem& problem() { return find_problem("05_topk"); }

const std::vector<Shape> kPublic = {shape(1, 131072, 64), shape(64, 8192, 8), shape(32, 16384, 32),
                                    shape(16, 12000, 16), shape(128, 4096, 1)};

/// All tensors of one shape.
struct Tensors {
  Shape of;
  std::vector<TensorSpec> specs;
  std::vector<float> x;
  std::vector<float> values;
  std::vector<std::int64_t> indices;

  explicit Tensors(const Shape& s)
      : of(s),
        specs(problem().tensors(s)),
        x(index(specs[0].elements())),
        values(index(specs[1].elements()), kNaN),
        indices(index(specs[2].elements()), -1) {}
  Tensors(const Shape& s, std::vector<float> data) : Tensors(s) { x = std::move(data); }

  std::array<TensorView, 1> inputs() { return {TensorView{&specs[0], reinterpret_cast<std::byte*>(x.data())}}; }
  std::array<TensorView, 2> outputs() {
    return {TensorView{&specs[1], reinterpret_cast<std::byte*>(values.data())},
            TensorView{&specs[2], reinterpret_cast<std::byte*>(indices.data())}};
  }
  Expected expected() {
    const auto in = inputs();
    return oracle(of, std::array<ConstTensorView, 1>{in[0]});
  }
  void answer_honestly() {
    const auto in = inputs();
    problem().honest(of, std::array<ConstTensorView, 1>{in[0]}, outputs(), {});
  }
  Comparison judge() {
    const auto in = inputs();
    const auto out = outputs();
    return compare(of, problem().nominal(), std::array<ConstTensorView, 1>{in[0]}, expected(),
                   std::array<ConstTensorView, 2>{out[0], out[1]});
  }
};

DrawKey key(const Shape& s, std::string_view case_name, int trial = 0) {
  return {"0123456789abcdef", "05_topk", 1, s, std::string(case_name), trial};
}

Tensors drawn(const Case& c, const Shape& s, int trial = 0) {
  Tensors tensors(s);
  c.fill(key(s, c.name, trial), tensors.inputs());
  return tensors;
}

// ---- what the problem declares
// ----------------------------------------------------------------------------------------

TEST(Topk, TensorsHaveTheContractsNamesAndTypes) {
  const auto specs = problem().tensors(shape(3, 100, 7));
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[0].name, "x");
  EXPECT_EQ(specs[0].dtype, DType::f32);
  EXPECT_EQ(specs[1].name, "values");
  EXPECT_EQ(specs[1].dims, (std::vector<std::int64_t>{3, 7}));
  EXPECT_EQ(specs[2].name, "indices");
  EXPECT_EQ(specs[2].dtype, DType::i64);
  EXPECT_EQ(specs[2].role, Role::output);
}

TEST(Topk, WorkIsThatOfThePublicFormulas) {
  const double bytes[] = {525'056, 2'103'296, 2'109'440, 771'072, 2'098'688};
  for (std::size_t i = 0; i < kPublic.size(); ++i) {
    const Work work = problem().work(kPublic[i]);
    EXPECT_EQ(work.min_bytes, bytes[i]);
    EXPECT_EQ(work.upstream_bytes, bytes[i]);
    EXPECT_EQ(work.upstream_flops, 4.0 * static_cast<double>(kPublic[i]["batch"] * kPublic[i]["n"]));
  }
}

TEST(Topk, ShapesOutsideTheDomainAreNamed) {
  const auto wrong = [](std::int64_t batch, std::int64_t n, std::int64_t k) {
    return problem().outside_domain(shape(batch, n, k)).value_or("inside");
  };
  EXPECT_EQ(wrong(1, 1, 1), "inside");
  EXPECT_EQ(wrong(16, 1 << 24, 1024), "inside");
  EXPECT_EQ(wrong(4096, 1 << 16, 1), "inside");
  EXPECT_EQ(wrong(0, 8, 1), "batch is 0, expected 1 to 4096");
  EXPECT_EQ(wrong(4097, 8, 1), "batch is 4097, expected 1 to 4096");
  EXPECT_EQ(wrong(1, (1 << 24) + 1, 1), "n is 16777217, expected 1 to 16777216");
  EXPECT_EQ(wrong(1, 8, 9), "k is 9, expected 1 to 8");
  EXPECT_EQ(wrong(1, 8, -1), "k is -1, expected 1 to 8");
  EXPECT_EQ(wrong(1, 8192, 1025), "k is 1025, expected 1 to 1024");
  EXPECT_EQ(wrong(4096, 1 << 24, 1), "batch * n is 68719476736, expected at most 268435456");
}

TEST(Topk, NeighboursAreInsideTheDomainAndSmall) {
  std::vector<Shape> listed = kPublic;
  listed.insert(listed.end(), {shape(4, 3000, 8), shape(1, 1, 1), shape(2, 7, 7), shape(1, 1 << 24, 1024),
                               shape(4096, 1 << 16, 1024), shape(1, 1024, 1024)});
  for (const Shape& s : listed) {
    SCOPED_TRACE(s.text());
    const auto neighbours = problem().neighbours(s);
    EXPECT_GE(neighbours.size(), 2u);
    std::set<std::string> seen = {s.text()};
    for (const Shape& beside : neighbours) {
      EXPECT_TRUE(seen.insert(beside.text()).second) << beside.text();
      EXPECT_EQ(problem().outside_domain(beside), std::nullopt) << beside.text();
      if (s["n"] >= 1000) {
        EXPECT_LE(problem().work(beside).min_bytes, 1.1 * problem().work(s).min_bytes) << beside.text();
      }
    }
  }
}

TEST(Topk, NeighboursOfThePublicShapesLeaveNoRoundNumber) {
  for (const Shape& s : kPublic) {
    SCOPED_TRACE(s.text());
    const auto neighbours = problem().neighbours(s);
    const auto any = [&](auto what) { return std::any_of(neighbours.begin(), neighbours.end(), what); };
    EXPECT_TRUE(any([&](const Shape& b) { return b["n"] == s["n"] + 1; }));
    EXPECT_TRUE(any([&](const Shape& b) { return b["n"] == s["n"] - 1; }));
    EXPECT_TRUE(any([&](const Shape& b) { return b["batch"] == s["batch"] + 1 && b["n"] % 2 == 1; }));
    EXPECT_TRUE(s["batch"] == 1 || any([](const Shape& b) { return b["batch"] == 1; }));
    EXPECT_TRUE(any([](const Shape& b) { return b["k"] == b["n"]; }));
    EXPECT_TRUE(any([](const Shape& b) { return b["k"] == 1; }));
  }
}

// ---- the oracle
// -------------------------------------------------------------------------------------------------------

const std::vector<Shape> kOddShapes = {shape(1, 1, 1),      shape(3, 37, 37),     shape(2, 5, 3),   shape(3, 1001, 7),
                                       shape(1, 70001, 64), shape(2, 1500, 1024), shape(5, 257, 1), shape(2, 1025, 32)};

TEST(TopkOracle, AgreesWithSortingOnEveryCase) {
  for (const Shape& s : kOddShapes)
    for (const Case& c : problem().cases) {
      if (!c.applies(s)) continue;
      SCOPED_TRACE(c.name + " " + s.text());
      Tensors t = drawn(c, s);
      EXPECT_TRUE(std::none_of(t.x.begin(), t.x.end(), [](float v) { return std::isnan(v); }));
      const Expected expected = t.expected();
      ASSERT_EQ(expected.outputs.size(), 2u);
      ASSERT_EQ(expected.outputs[0].size(), t.values.size());
      for (std::int64_t r = 0; r < s["batch"]; ++r) {
        auto row = row_of(std::span(t.x), r, s["n"]);
        std::vector<float> sorted(row.begin(), row.end());
        std::sort(sorted.begin(), sorted.end(), std::greater<>());
        for (std::int64_t j = 0; j < s["k"]; ++j)
          ASSERT_EQ(expected.outputs[0][index(r * s["k"] + j)], static_cast<double>(sorted[index(j)])) << r << " " << j;
      }
      t.answer_honestly();
      const Comparison comparison = t.judge();
      EXPECT_TRUE(comparison.pass) << (comparison.mismatch ? comparison.mismatch->rule : "");
      EXPECT_EQ(comparison.total, s["batch"] * s["k"]);
    }
}

TEST(TopkOracle, KeysAreInTheOrderOfTheFloats) {
  const float ascending[] = {-kInfinity, -1e30f, -1, -1e-42f, -0.0f, 0.0f, 1e-42f, 1, 1e30f, kInfinity};
  for (std::size_t i = 0; i < std::size(ascending); ++i) {
    if (i > 0) {
      EXPECT_LT(ordered_key(ascending[i - 1]), ordered_key(ascending[i]));
    }
    EXPECT_EQ(std::bit_cast<std::uint32_t>(value_of_key(ordered_key(ascending[i]))),
              std::bit_cast<std::uint32_t>(ascending[i]));
  }
}

// ---- the comparison
// ---------------------------------------------------------------------------------------------------

Tensors small() {
  Tensors t(shape(2, 4, 2), {1, 5, 3, -1, /**/ 2, 2, -0.0f, 0});
  t.answer_honestly();
  return t;
}

TEST(TopkComparison, TakesARightAnswer) {
  Tensors t = small();
  EXPECT_EQ(t.values, (std::vector<float>{5, 3, 2, 2}));
  EXPECT_EQ(t.indices, (std::vector<std::int64_t>{1, 2, 0, 1}));
  EXPECT_TRUE(t.judge().pass);
  EXPECT_EQ(t.judge().bad, 0);
}

TEST(TopkComparison, TakesTiesInAnyOrder) {
  Tensors t = small();
  t.indices = {1, 2, 1, 0};
  EXPECT_TRUE(t.judge().pass);
}

TEST(TopkComparison, AWrongValueIsNamed) {
  Tensors t = small();
  t.values[1] = 4;
  const Comparison c = t.judge();
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.bad, 1);
  EXPECT_GT(c.worst, 1);
  ASSERT_TRUE(c.mismatch);
  EXPECT_EQ(c.mismatch->output, "values");
  EXPECT_EQ(c.mismatch->index, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(c.mismatch->expected, "3");
  EXPECT_EQ(c.mismatch->got, "4");
  EXPECT_THAT(c.mismatch->rule, HasSubstr("exact descending list, position by position"));
}

TEST(TopkComparison, TheRuleDoesNotTellTheAnswer) {
  // A practice job sees got and rule, not expected.
  Tensors t(shape(1, 2, 1), {1234.5f, 0});
  t.values = {7};
  t.indices = {0};
  const Mismatch m = *t.judge().mismatch;
  EXPECT_THAT(m.expected, HasSubstr("1234.5"));
  EXPECT_THAT(m.rule + m.got, Not(HasSubstr("1234.5")));
}

TEST(TopkComparison, UnsortedValuesAreWrong) {
  Tensors t = small();
  std::swap(t.values[0], t.values[1]);
  std::swap(t.indices[0], t.indices[1]);
  EXPECT_EQ(t.judge().bad, 2);
}

TEST(TopkComparison, NaNIsWrong) {
  Tensors t = small();
  t.values[2] = kNaN;
  const Comparison c = t.judge();
  EXPECT_FALSE(c.pass);
  EXPECT_THAT(c.mismatch->got, HasSubstr("nan"));
}

TEST(TopkComparison, AnIndexOutOfRangeIsNamed) {
  for (const std::int64_t wrong : {std::int64_t{4}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max()}) {
    Tensors t = small();
    t.indices[3] = wrong;
    const Comparison c = t.judge();
    EXPECT_FALSE(c.pass);
    EXPECT_EQ(c.mismatch->output, "indices");
    EXPECT_EQ(c.mismatch->index, (std::vector<std::int64_t>{1, 1}));
    EXPECT_EQ(c.mismatch->expected, "0 to 3");
    EXPECT_EQ(c.mismatch->got, std::to_string(wrong));
  }
}

TEST(TopkComparison, AnIndexThatHoldsAnotherValueIsNamed) {
  Tensors t = small();
  t.indices[0] = 0;
  const Comparison c = t.judge();
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.mismatch->expected, "1 (bits 0x3f800000), which is x[0, 0]");
  EXPECT_EQ(c.mismatch->got, "5 (bits 0x40a00000)");
  EXPECT_EQ(c.mismatch->rule, "values have the bits of x at the given index");
}

TEST(TopkComparison, ARepeatedIndexIsNamed) {
  Tensors t = small();
  t.indices[3] = 0;
  const Comparison c = t.judge();
  EXPECT_EQ(c.bad, 1);
  EXPECT_EQ(c.mismatch->index, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(c.mismatch->rule, "each index stands at most once in a row");
}

TEST(TopkComparison, ZerosAreEqualButKeepTheirBits) {
  Tensors t(shape(1, 3, 2), {-0.0f, 0.0f, -1});
  t.indices = {0, 1};
  t.values = {-0.0f, 0.0f};
  EXPECT_TRUE(t.judge().pass);
  t.indices = {1, 0};
  t.values = {0.0f, -0.0f};
  EXPECT_TRUE(t.judge().pass);
  t.values = {0.0f, 0.0f};
  EXPECT_EQ(t.judge().mismatch->rule, "values have the bits of x at the given index");
}

TEST(TopkComparison, InfinitiesAreOrdered) {
  Tensors t(shape(1, 4, 4), {-kInfinity, 1, kInfinity, -kInfinity});
  t.indices = {2, 1, 3, 0};
  t.values = {kInfinity, 1, -kInfinity, -kInfinity};
  EXPECT_TRUE(t.judge().pass);
}

/// Bytes that end at an unmapped page.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    size_ = (bytes + page_ - 1) / page_ * page_ + page_;
    base_ = static_cast<std::byte*>(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(static_cast<void*>(base_), MAP_FAILED);
    EXPECT_EQ(::mprotect(base_ + size_ - page_, page_, PROT_NONE), 0);
    data_ = base_ + size_ - page_ - bytes;
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { ::munmap(base_, size_); }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::size_t page_;
  std::size_t size_ = 0;
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
};

TEST(TopkComparison, ReadsNothingOutsideItsBuffersWhateverTheOutputsHold) {
  const Shape s = shape(3, 50, 6);
  Tensors t = drawn(problem().nominal(), s);
  const Expected expected = t.expected();
  const Guarded x(t.specs[0].bytes());
  const Guarded values(t.specs[1].bytes());
  const Guarded indices(t.specs[2].bytes());
  std::memcpy(x.data(), t.x.data(), t.specs[0].bytes());
  const std::array<ConstTensorView, 1> in = {ConstTensorView(&t.specs[0], x.data())};
  const std::array<ConstTensorView, 2> out = {ConstTensorView(&t.specs[1], values.data()),
                                              ConstTensorView(&t.specs[2], indices.data())};
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    t.answer_honestly();  // right values, so that the comparison gets as far as the index
    for (std::int64_t& i : t.indices) {
      const std::int64_t far = static_cast<std::int64_t>(random.word()) << random.below(32);
      if (random.below(2) == 0) i = random.below(2) == 0 ? far : -far;
    }
    std::memcpy(values.data(), t.values.data(), t.specs[1].bytes());
    std::memcpy(indices.data(), t.indices.data(), t.specs[2].bytes());
    EXPECT_FALSE(compare(s, problem().nominal(), in, expected, out).pass);
  }
}

// ---- the data
// ---------------------------------------------------------------------------------------------------------

std::span<const float> row(const Tensors& t, std::int64_t r) { return row_of(std::span(t.x), r, t.of["n"]); }

TEST(TopkCases, CanonicalClusterStandsWhereThePublicOneDoes) {
  const Shape s = shape(2, 8192, 8);
  Tensors t = drawn(*problem().find_case("cluster_canonical"), s);
  const float base = t.x[0];
  for (std::int64_t i = 0; i < 8192; ++i)
    EXPECT_EQ(row(t, 1)[index(i)] > base, i >= 3 * 1024 + 17 && i < 3 * 1024 + 17 + 16) << i;
  EXPECT_FLOAT_EQ(row(t, 1)[3 * 1024 + 17], 2 * base);           // plateau 1, first spike 2
  EXPECT_FLOAT_EQ(row(t, 1)[3 * 1024 + 17 + 15], 1.25f * base);  // last spike 1.25
}

TEST(TopkCases, RandomClustersStayInOnePartition) {
  const Shape s = shape(1, 131072, 64);
  std::set<std::int64_t> partitions;
  for (int trial = 0; trial < 20; ++trial) {
    Tensors t = drawn(*problem().find_case("cluster"), s, trial);
    const float base = *std::min_element(t.x.begin(), t.x.end());
    std::vector<std::int64_t> spikes;
    for (std::int64_t i = 0; i < 131072; ++i)
      if (t.x[index(i)] > base) spikes.push_back(i);
    EXPECT_GE(spikes.size(), 65u);
    EXPECT_LE(spikes.size(), 96u);
    EXPECT_EQ(spikes.front() / 1024, spikes.back() / 1024);
    EXPECT_EQ(spikes.back() - spikes.front() + 1, std::ssize(spikes));
    partitions.insert(spikes.front() / 1024);
  }
  EXPECT_GE(partitions.size(), 10u);
}

TEST(TopkCases, LaneWinnersShareTheirPlaceModuloTheStride) {
  for (const std::int64_t stride : {256, 512, 1024, 2048}) {
    Tensors t = drawn(*problem().find_case("one_lane_" + std::to_string(stride)), shape(4, 131072, 32));
    for (std::int64_t r = 0; r < 4; ++r) {
      std::set<std::int64_t> lanes;
      std::int64_t winners = 0;
      for (std::int64_t i = 0; i < 131072; ++i)
        if (row(t, r)[index(i)] >= 10) {
          lanes.insert(i % stride);
          ++winners;
        }
      EXPECT_EQ(lanes.size(), 1u);
      EXPECT_EQ(winners, 64);
    }
  }
}

TEST(TopkCases, TileEdgesAreAmongTheWinners) {
  Tensors t = drawn(*problem().find_case("tile_edges"), shape(6, 8192, 16));
  for (std::int64_t r = 0; r < 6; ++r) {
    EXPECT_GE(row(t, r).front(), 10);
    EXPECT_GE(row(t, r).back(), 10);
    EXPECT_LE(std::count_if(row(t, r).begin(), row(t, r).end(), [](float v) { return v >= 10; }), 16);
  }
}

TEST(TopkCases, KthTieHasTooFewWinnersAndManyTies) {
  Tensors t = drawn(*problem().find_case("kth_tie"), shape(2, 4096, 9));
  for (std::int64_t r = 0; r < 2; ++r) {
    const double tie = t.expected().outputs[0][index(r * 9 + 8)];
    EXPECT_EQ(std::count_if(row(t, r).begin(), row(t, r).end(), [&](float v) { return v > tie; }), 8);
    const auto ties = std::count_if(row(t, r).begin(), row(t, r).end(), [&](float v) { return v == tie; });
    EXPECT_NEAR(static_cast<double>(ties), 2048, 200);
  }
}

TEST(TopkCases, SharedBitsAreShared) {
  for (const int bits : {12, 16, 20, 24}) {
    Tensors t = drawn(*problem().find_case("shared_" + std::to_string(bits) + "_bits"), shape(3, 500, 4));
    std::set<std::uint32_t> prefixes;
    for (std::int64_t r = 0; r < 3; ++r)
      for (const float v : row(t, r)) prefixes.insert(std::bit_cast<std::uint32_t>(v) >> (32 - bits));
    EXPECT_EQ(prefixes.size(), 3u) << bits;
  }
}

TEST(TopkCases, InfinitiesAreAsMany) {
  const auto count = [](const Tensors& t, float value) { return std::count(t.x.begin(), t.x.end(), value); };
  const Shape s = shape(1, 5000, 8);
  EXPECT_EQ(count(drawn(*problem().find_case("infinity_once"), s), kInfinity), 1);
  EXPECT_GT(count(drawn(*problem().find_case("many_infinities"), s), kInfinity), 8);
  EXPECT_NEAR(static_cast<double>(count(drawn(*problem().find_case("half_minus_infinity"), s), -kInfinity)), 2500, 200);
  EXPECT_EQ(count(drawn(*problem().find_case("mostly_minus_infinity"), s), -kInfinity), 5000 - 4);
}

TEST(TopkCases, ChangesAreFewAndChangeTheAnswer) {
  for (const std::string_view name : {"in_place_raise", "in_place_lower"})
    for (const Shape& s : {shape(3, 1001, 7), shape(1, 1, 1), shape(2, 5, 5), shape(4, 3000, 1)})
      for (int trial = 0; trial < 20; ++trial) {
        SCOPED_TRACE(std::string(name) + " " + s.text());
        const Case& c = *problem().find_case(name);
        Tensors t = drawn(c, s, trial);
        const std::vector<float> before = t.x;
        const Expected old = t.expected();
        c.change(key(s, c.name, trial), 1, t.inputs(), {});
        std::size_t changed = 0;
        for (std::size_t i = 0; i < before.size(); ++i) changed += before[i] != t.x[i] ? 1 : 0;
        EXPECT_GE(changed, 1u);
        EXPECT_LE(changed, 7u);
        EXPECT_NE(t.expected().outputs[0], old.outputs[0]);
      }
}

TEST(TopkCases, RandomPositionsAreDifferentAndEverywhere) {
  Random random(4);
  std::vector<int> hits(10);
  for (int round = 0; round < 3000; ++round) {
    const auto positions = random_positions(random, 10, 3);
    EXPECT_EQ((std::set<std::int64_t>(positions.begin(), positions.end()).size()), 3u);
    for (const std::int64_t p : positions) ++hits[index(p)];
  }
  for (const int h : hits) EXPECT_NEAR(h, 900, 130);  // 5 standard deviations
  auto all = random_positions(random, 7, 7);
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> wanted(7);
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(all, wanted);
  EXPECT_TRUE(random_positions(random, 7, 0).empty());
}

}  // namespace
}  // namespace kbh::topk
