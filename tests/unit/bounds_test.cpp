#include "deck/bounds.hpp"

#include <gmock/gmock.h>
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

TEST_F(PublicCeilings, OfWholeProblems) {
  // Geometric means over the shapes: RTX PRO 6000, H100 PCIe, H100 SXM, B200.
  const std::map<std::string, std::vector<double>> expected = {
      {"01_fp8_gemm", {0.581, 0.540, 0.572, 0.579}},
      {"02_kda", {0.307, 0.230, 0.289, 0.303}},
      {"06_moe_swiglu", {0.145, 0.131, 0.142, 0.144}},
      {"07_w4a16_gemm", {0.823, 0.872, 0.834, 0.826}},
  };
  for (const auto& [id, ceilings] : expected) {
    std::size_t i = 0;
    for (const char* deck : {"rtx-pro-6000", "h100-pcie", "h100-sxm", "b200"})
      EXPECT_NEAR(geometric_mean(on(deck, id.c_str())), ceilings[i++], 0.001) << id << " " << deck;
  }
  for (const char* id : {"03_paged_attention", "04_kahan_softmax", "05_topk", "08_lightning_attention"})
    for (const char* deck : {"rtx-pro-6000", "h100-pcie", "h200", "b200"})
      EXPECT_NEAR(geometric_mean(on(deck, id)), 1, 0.001) << id << " " << deck;
}

TEST_F(PublicCeilings, OfShapesThatAreGradedByTheWrongResource) {
  EXPECT_NEAR(on("rtx-pro-6000", "01_fp8_gemm")[2], 0.114, 0.001);  // 32 rows: bytes bind, flops are graded
  EXPECT_NEAR(on("h100-pcie", "01_fp8_gemm")[2], 0.085, 0.001);
  EXPECT_NEAR(on("h100-sxm", "01_fp8_gemm")[2], 0.107, 0.001);
  EXPECT_NEAR(on("b200", "01_fp8_gemm")[2], 0.112, 0.001);
  EXPECT_NEAR(on("rtx-pro-6000", "07_w4a16_gemm")[2], 0.379, 0.001);  // 256 rows: the other way round
  EXPECT_NEAR(on("h100-pcie", "07_w4a16_gemm")[2], 0.505, 0.001);
  expect_near(on("rtx-pro-6000", "06_moe_swiglu"), {0.125, 0.194, 0.125});  // upstream forgot the K copies
  expect_near(on("h200", "06_moe_swiglu"), {0.125, 0.25, 0.125});
}

TEST_F(PublicCeilings, RooflineTimes) {
  const auto times = [](const char* deck_name, const char* id) {
    const Deck deck = find_deck(deck_name);
    std::vector<double> us;
    for (const DeckShape& listed : deck.shapes_of(find_problem(id)))
      us.push_back(bound_of(find_problem(id), listed.shape, datasheet_peaks(deck)).roofline_us());
    return us;
  };
  const auto near = [](double us) { return ::testing::DoubleNear(us, us / 50); };
  using ::testing::ElementsAre;
  EXPECT_THAT(times("rtx-pro-6000", "03_paged_attention"),
              ElementsAre(near(18.7), near(149), near(37.4), near(56.0), near(9.1)));
  EXPECT_THAT(times("h200", "06_moe_swiglu"), ElementsAre(near(6670), near(139), near(4447)));
  EXPECT_THAT(times("rtx-pro-6000", "05_topk"),
              ElementsAre(near(0.292), near(1.17), near(1.17), near(0.428), near(1.17)));
}

}  // namespace
}  // namespace kbh
