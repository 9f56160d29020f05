#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "problem/registry.hpp"
#include "problems/golden.hpp"

namespace kbh {
namespace {

std::size_t bytes_of(std::string_view dtype) {
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::e4m3, DType::i8, DType::u8,
                           DType::i32, DType::i64, DType::boolean})
    if (name_of(type) == dtype) return size_of(type);
  return 0;
}

TEST(Golden, AllCasesOfAllProblemsAreThereAndWhole) {
  std::map<std::string, int> per_problem;
  for (const golden::GoldenCase& c : golden::cases()) {
    ++per_problem[c.problem.substr(0, 2)];
    for (const golden::Tensor& t : c.tensors) {
      std::size_t elements = 1;
      for (const std::int64_t dim : t.dims) elements *= static_cast<std::size_t>(dim);
      EXPECT_EQ(t.bytes.size(), elements * bytes_of(t.dtype)) << c.name << " " << t.role << " " << t.name;
    }
  }
  const std::map<std::string, int> expected = {{"01", 2}, {"02", 2}, {"03", 2}, {"04", 2},
                                               {"05", 2}, {"06", 2}, {"07", 2}};
  EXPECT_EQ(per_problem, expected);
}

TEST(Golden, TopkAgreesWithThePublicReferenceExactly) {
  const Problem& problem = find_problem("05_topk_bitonic");
  int seen = 0;
  for (const golden::GoldenCase& c : golden::cases()) {
    if (c.problem != "05_topk_bitonic") continue;
    SCOPED_TRACE(c.name);
    ++seen;
    std::vector<TensorSpec> specs = problem.tensors(c.shape);
    ASSERT_EQ(specs.size(), 3u);
    std::array<std::string, 3> bytes = {c.tensor("input", "0").bytes, c.tensor("output", "0").bytes,
                                        c.tensor("output", "1").bytes};
    for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(bytes[i].size(), specs[i].bytes());
    const auto view = [&](std::size_t i, const std::string& data) {
      return ConstTensorView(&specs[i], reinterpret_cast<const std::byte*>(data.data()));
    };
    const std::array<ConstTensorView, 1> inputs = {view(0, bytes[0])};
    const std::array<ConstTensorView, 2> outputs = {view(1, bytes[1]), view(2, bytes[2])};

    const Expected expected = problem.oracle(c.shape, inputs);
    const auto values = outputs[0].as<float>();
    EXPECT_TRUE(std::equal(values.begin(), values.end(), expected.outputs[0].begin(), expected.outputs[0].end()));
    const Comparison comparison = problem.compare(c.shape, problem.nominal(), inputs, expected, outputs);
    EXPECT_TRUE(comparison.pass) << (comparison.mismatch ? comparison.mismatch->rule : "");
    EXPECT_EQ(comparison.worst, 0);

    // No ties in these data: our own answer has the reference's indices, too.
    std::string own_values(bytes[1].size(), '\0');
    std::string own_indices(bytes[2].size(), '\0');
    const std::array<TensorView, 2> own = {TensorView{&specs[1], reinterpret_cast<std::byte*>(own_values.data())},
                                           TensorView{&specs[2], reinterpret_cast<std::byte*>(own_indices.data())}};
    problem.honest(c.shape, inputs, own, {});
    EXPECT_EQ(own_values, bytes[1]);
    EXPECT_EQ(own_indices, bytes[2]);

    // One wrong bit is seen.
    bytes[1][0] = static_cast<char>(bytes[1][0] ^ 1);
    EXPECT_FALSE(problem.compare(c.shape, problem.nominal(), inputs, expected, outputs).pass);
  }
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace kbh
