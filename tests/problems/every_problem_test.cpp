// What every problem must prove: its cases bite (lint), its oracle and its reference agree with the public PyTorch
// reference, and its data have the same bits everywhere.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/dtype.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "deck/deck.hpp"
#include "problem/lint.hpp"
#include "problem/problem_list.hpp"
#include "problem/registry.hpp"
#include "problems/golden.hpp"
#include "problems/parity.hpp"

namespace kbh {
namespace {

using testing::IsEmpty;

const Seed kSeed = "0123456789abcdef";

std::vector<std::string> built_ids() {
  std::vector<std::string> ids;
  for (const Problem& problem : all_problems()) ids.push_back(problem.id);
  return ids;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

std::vector<Shape> tiny_shapes(const Problem& problem) {
  std::vector<Shape> shapes;
  const Deck deck = find_deck("cpu-tiny");
  for (const DeckShape& listed : deck.shapes_of(problem)) shapes.push_back(listed.shape);
  return shapes;
}

/// Bytes of tensors, and views of them.
struct Tensors {
  std::vector<TensorSpec> specs;
  std::vector<std::string> bytes;

  [[nodiscard]] std::vector<TensorView> views() {
    std::vector<TensorView> all;
    for (std::size_t i = 0; i < specs.size(); ++i)
      all.push_back({&specs[i], reinterpret_cast<std::byte*>(bytes[i].data())});
    return all;
  }
};

std::vector<ConstTensorView> constant(const std::vector<TensorView>& views) { return {views.begin(), views.end()}; }

class EveryProblem : public testing::TestWithParam<std::string> {
 protected:
  const Problem& problem = find_problem(GetParam());
};

TEST_P(EveryProblem, IsComplete) {
  EXPECT_TRUE(problem.tensors && problem.work && problem.outside_domain && problem.neighbours && problem.oracle &&
              problem.compare && problem.honest);
  EXPECT_FALSE(problem.prompt.empty() || problem.reference_python.empty() || problem.reference_cpp.empty());
  EXPECT_GE(problem.mutants.size(), 8u);
  for (const Case& c : problem.cases) {
    EXPECT_TRUE(c.fill) << c.name;
    EXPECT_FALSE(c.about.empty() || (c.kills.empty() && c.barely_kills.empty())) << c.name;
    EXPECT_EQ(problem.find_case(c.name), &c);
  }
  EXPECT_EQ(problem.find_case("no such case"), nullptr);
  for (const Shape& shape : tiny_shapes(problem)) {
    EXPECT_EQ(problem.outside_domain(shape), std::nullopt) << shape.text();
    EXPECT_THAT(problem.neighbours(shape), testing::Not(IsEmpty()));
    for (const Shape& beside : problem.neighbours(shape)) {
      EXPECT_EQ(problem.outside_domain(beside), std::nullopt) << beside.text();
      EXPECT_NE(beside, shape);
    }
    const Work work = problem.work(shape);
    EXPECT_GT(work.flops, 0);
    EXPECT_GT(work.min_bytes, 0);
    EXPECT_GT(work.upstream_bytes, 0);
  }
}

TEST_P(EveryProblem, CasesKillMutantsAndSpareTheHonest) {
  const LintReport report = lint_problem(problem, tiny_shapes(problem), kSeed);
  EXPECT_THAT(report.faults, IsEmpty()) << lint_text(report);
}

// ---- golden data

/// Golden state and inputs are given in the problem's order; upstream's dummy state is no tensor of ours.
Tensors golden_tensors(const Problem& problem, const golden::GoldenCase& c, bool outputs) {
  Tensors tensors;
  std::vector<const golden::Tensor*> given;
  for (const golden::Tensor& t : c.tensors)
    if ((t.role == "output") == outputs && t.name != "_dummy") given.push_back(&t);
  for (const TensorSpec& spec : problem.tensors(c.shape))
    if ((spec.role == Role::output) == outputs) tensors.specs.push_back(spec);
  EXPECT_EQ(given.size(), tensors.specs.size());
  for (std::size_t i = 0; i < tensors.specs.size(); ++i) {
    // State has names, inputs and outputs are numbered.
    const auto by_name = std::find_if(given.begin(), given.end(),
                                      [&](const golden::Tensor* t) { return t->name == tensors.specs[i].name; });
    const golden::Tensor& t = by_name == given.end() ? *given.at(i) : **by_name;
    EXPECT_EQ(t.dims, tensors.specs[i].dims) << tensors.specs[i].name;
    EXPECT_EQ(t.dtype, name_of(tensors.specs[i].dtype)) << tensors.specs[i].name;
    tensors.bytes.push_back(t.bytes);
  }
  return tensors;
}

TEST_P(EveryProblem, AgreesWithThePublicReference) {
  int seen = 0;
  for (const golden::GoldenCase& c : golden::cases()) {
    if (c.problem.substr(0, 2) != problem.id.substr(0, 2)) continue;
    SCOPED_TRACE(c.name);
    ++seen;
    Tensors given = golden_tensors(problem, c, false);
    Tensors published = golden_tensors(problem, c, true);
    Tensors honest = published;
    for (std::string& bytes : honest.bytes) std::fill(bytes.begin(), bytes.end(), '\xab');
    const Expected expected = problem.oracle(c.shape, constant(given.views()));
    problem.honest(c.shape, constant(given.views()), honest.views(), {});
    for (std::size_t o = 0; o < published.specs.size(); ++o) {
      const auto mine = [&](std::size_t i) { return golden::value_of(published.specs[o], honest.bytes[o], i); };
      // reference.hpp rounds its output, as the public one does: twice the distance, less what both share.
      EXPECT_LE(golden::parity_ratio(golden::twice(problem.parity), published.specs[o], published.bytes[o], mine), 1)
          << "reference.hpp, output " << o;
      if (expected.outputs[o].empty()) continue;
      const auto oracle = [&](std::size_t i) { return expected.outputs[o][i]; };
      EXPECT_LE(golden::parity_ratio(problem.parity, published.specs[o], published.bytes[o], oracle), 1)
          << "oracle, output " << o;
    }
  }
  EXPECT_EQ(seen, problem.id == "08_lightning_attention" ? 0 : 2);
}

// ---- the bits of the data, for other devices to be held against

/// One line per case and tensor: name and the start of a SHA-256 over its bytes.
std::string bits_of(const Problem& problem) {
  const Shape shape = tiny_shapes(problem).front();
  std::string lines;
  for (const Case& c : problem.cases) {
    if (c.applies && !c.applies(shape)) continue;
    Tensors tensors;
    for (const TensorSpec& spec : problem.tensors(shape)) {
      if (spec.role == Role::output) continue;
      tensors.specs.push_back(spec);
      tensors.bytes.emplace_back(spec.bytes(), '\0');
    }
    const DrawKey key{kSeed, problem.id, problem.version, shape, c.name, 0};
    const std::vector<TensorView> views = tensors.views();
    const auto inputs =
        std::find_if(views.begin(), views.end(), [](const auto& v) { return v.spec->role == Role::input; });
    if (c.fill_state) c.fill_state(key, std::span(views.data(), static_cast<std::size_t>(inputs - views.begin())));
    c.fill(key, views);
    for (std::size_t i = 0; i < tensors.specs.size(); ++i)
      lines += fmt::format("{} {} {}\n", c.name, tensors.specs[i].name, sha256_hex(tensors.bytes[i]).substr(0, 32));
  }
  return lines;
}

TEST_P(EveryProblem, DrawsTheRecordedBits) {
  const fs::path file = fs::path(KBH_SOURCE_DIR) / "tests/data/bits" / (problem.id + ".txt");
  const std::string header =
      fmt::format("{} version {} {}\n", problem.id, problem.version, tiny_shapes(problem).front().text());
  const std::string bits = header + bits_of(problem);
  if (std::getenv("KBH_RECORD_BITS")) {
    fs::create_directories(file.parent_path());
    write_atomic(file, bits);
  }
  ASSERT_TRUE(fs::exists(file)) << "KBH_RECORD_BITS=1 writes it";
  EXPECT_EQ(bits, read_text(file)) << "the data changed: a new version of the problem? KBH_RECORD_BITS=1 records them";
}

INSTANTIATE_TEST_SUITE_P(All, EveryProblem, testing::ValuesIn(built_ids()), test_name);

TEST(Golden, AllCasesOfAllProblemsAreThereAndWhole) {
  const auto bytes_of = [](std::string_view dtype) -> std::size_t {
    for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::e4m3, DType::i8, DType::u8,
                             DType::i32, DType::i64, DType::boolean})
      if (name_of(type) == dtype) return size_of(type);
    return 0;
  };
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

}  // namespace
}  // namespace kbh
