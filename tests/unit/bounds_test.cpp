#include "deck/bounds.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/statistics.hpp"
#include "problem/registry.hpp"

namespace kbh {
namespace {

const Peaks kH200 = {{{"fp8_e4m3", 1979}, {"bf16", 989.5}, {"fp32", 67}}, 4800};

Problem with_work(Regime regime, const Work& work) {
  Problem problem;
  problem.regime = regime;
  problem.work = [work](const Shape&) { return work; };
  return problem;
}

TEST(Bounds, TheLargerTimeBinds) {
  const Work work = {.flops = 989.5e6, .min_bytes = 9.6e6, .upstream_flops = 494.75e6, .flops_dtype = DType::bf16};
  const Bound bound = bound_of(with_work(Regime::compute, work), {}, kH200);
  EXPECT_DOUBLE_EQ(bound.compute_us, 1);
  EXPECT_DOUBLE_EQ(bound.memory_us, 2);
  EXPECT_DOUBLE_EQ(bound.roofline_us(), 2);
  EXPECT_EQ(bound.binds(), Regime::memory);
  EXPECT_DOUBLE_EQ(bound.upstream_ceiling(), 0.25);  // graded by its flops, half of the true ones, while bytes bind
}

TEST(Bounds, UpstreamGradesTheResourceOfTheProblem) {
  const Work work = {.flops = 989.5e6, .min_bytes = 4.8e6, .upstream_bytes = 2.4e6, .flops_dtype = DType::bf16};
  const Bound bound = bound_of(with_work(Regime::memory, work), {}, kH200);
  EXPECT_DOUBLE_EQ(bound.upstream_us, 0.5);
  EXPECT_DOUBLE_EQ(bound.upstream_ceiling(), 0.5);
}

TEST(Bounds, MissingFormatsAreComputedInTheNextWider) {
  EXPECT_EQ(peak_tflops(kH200, DType::e4m3), 1979);
  EXPECT_EQ(peak_tflops(kH200, DType::f16), 67);  // not listed above
  const Peaks laptop = {{{"bf16", 34}, {"fp32", 17}}, 546};
  EXPECT_EQ(peak_tflops(laptop, DType::e4m3), 34);
  const Peaks processor = {{{"fp32", 0.2}, {"fp64", 0.1}}, 30};
  EXPECT_EQ(peak_tflops(processor, DType::e4m3), 0.2);
  EXPECT_EQ(peak_tflops(processor, DType::bf16), 0.2);
  EXPECT_EQ(peak_tflops(processor, DType::f64), 0.1);
  EXPECT_EQ(peak_tflops({{{"bf16", 34}}, 1}, DType::f32), 0);
}

/// The highest score of upstream's formula, per shape, as an independent count says (upstream's own shapes).
class PublicCeilings : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("KBH_ROOT", KBH_SOURCE_DIR, 1); }
  void TearDown() override { ::unsetenv("KBH_ROOT"); }

  static std::vector<double> on(const char* deck_name, const char* id) {
    const Deck deck = find_deck(deck_name);
    const Problem& problem = find_problem(id);
    std::vector<double> ceilings;
    for (const DeckShape& listed : deck.shapes_of(problem))
      ceilings.push_back(bound_of(problem, listed.shape, datasheet_peaks(deck)).upstream_ceiling());
    return ceilings;
  }

  static void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.006) << i;
  }
};

TEST_F(PublicCeilings, TopkIsBoundByBytes) {
  expect_near(on("h200", "05_topk"), {1, 1, 1, 1, 1});
  // 0.29 us for the single row on the RTX PRO 6000, 0.066 on the B200.
  const Deck rtx = find_deck("rtx-pro-6000");
  const Problem& topk = find_problem("05_topk");
  EXPECT_NEAR(bound_of(topk, rtx.shapes_of(topk)[0].shape, datasheet_peaks(rtx)).roofline_us(), 0.29, 0.01);
}

}  // namespace
}  // namespace kbh
