// reference.py of every problem, run with PyTorch on the golden data and on our own cases (run_reference.py drives it).
// Skipped where no python3 can import torch: `scripts/install-packages reference` brings it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/json.hpp"
#include "deck/deck.hpp"
#include "problem/registry.hpp"
#include "problems/golden.hpp"
#include "problems/parity.hpp"

namespace kbh {
namespace {

bool runs(const std::string& command) {
  return std::system(command.c_str()) == 0;  // NOLINT(cert-env33-c): our own words
}

/// The first of $KBH_PYTHON, the path's and the distribution's python3 that has PyTorch; empty when none has.
const std::string& python_with_torch() {
  static const std::string found = [] {
    const char* given = std::getenv("KBH_PYTHON");
    for (const std::string& python :
         {std::string(given ? given : ""), std::string("python3"), std::string("/usr/bin/python3")})
      if (!python.empty() && runs("'" + python + "' -c 'import torch' > /dev/null 2>&1")) return python;
    return std::string();
  }();
  return found;
}

class CaseWriter {
 public:
  CaseWriter(fs::path folder, const Shape& shape) : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    for (const auto& [name, value] : shape.dims) json_["shape"][name] = value;
    json_["tensors"] = Json::array();
  }

  /// Inputs and state with their bytes; an output's are written by the driver.
  fs::path add(std::string_view role, std::string_view name, std::string_view dtype,
               const std::vector<std::int64_t>& dims, std::string_view bytes = {}) {
    const std::string file = fmt::format("{}.bin", json_["tensors"].size());
    json_["tensors"].push_back({{"role", role}, {"name", name}, {"dtype", dtype}, {"dims", dims}, {"file", file}});
    if (role != "output") write_atomic(folder_ / file, bytes);
    return folder_ / file;
  }

  /// `contract`: whether the driver also looks at get_inputs and at the state's names.
  void finish(bool contract) {
    json_["contract"] = contract;
    write_atomic(folder_ / "case.json", to_text(json_));
  }

 private:
  fs::path folder_;
  Json json_;
};

class ReferencePy : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (python_with_torch().empty())
      GTEST_SKIP() << "no python3 here can import torch (scripts/install-packages reference)";
  }

  /// Runs the driver on folders below the temporary one.
  void run(const std::vector<fs::path>& folders) {
    std::string command = fmt::format("'{}' '{}/tests/problems/run_reference.py' '{}/src/problems/{}/reference.py'",
                                      python_with_torch(), KBH_SOURCE_DIR, KBH_SOURCE_DIR, problem.id);
    for (const fs::path& folder : folders) command += fmt::format(" '{}'", folder.string());
    const fs::path log = work_.path() / "log";
    ASSERT_TRUE(runs(command + " > '" + log.string() + "' 2>&1")) << read_text(log);
  }

  const Problem& problem = find_problem(GetParam());
  TempDir work_{"kbh-reference"};
};

/// Both round their output, so they may differ by twice what each may.
TEST_P(ReferencePy, AgreesWithThePublicReference) {
  std::vector<fs::path> folders;
  std::vector<std::vector<fs::path>> outputs;
  std::vector<const golden::GoldenCase*> cases;
  for (const golden::GoldenCase& c : golden::cases()) {
    if (c.problem.substr(0, 2) != problem.id.substr(0, 2)) continue;
    cases.push_back(&c);
    folders.push_back(work_.path() / c.name);
    outputs.emplace_back();
    CaseWriter writer(folders.back(), c.shape);
    for (const golden::Tensor& t : c.tensors) {
      const fs::path file = writer.add(t.role, t.name, t.dtype, t.dims, t.bytes);
      if (t.role == "output") outputs.back().push_back(file);
    }
    writer.finish(true);
  }
  if (folders.empty()) GTEST_SKIP() << "no golden data: the public benchmark has no such problem";
  run(folders);
  if (HasFatalFailure()) return;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    std::vector<TensorSpec> specs = problem.tensors(cases[c]->shape);
    std::erase_if(specs, [](const TensorSpec& spec) { return spec.role != Role::output; });
    ASSERT_EQ(specs.size(), outputs[c].size());
    for (std::size_t o = 0; o < specs.size(); ++o) {
      const std::string mine = read_text(outputs[c][o]);
      ASSERT_EQ(mine.size(), specs[o].bytes());
      const std::string& published = cases[c]->tensor("output", std::to_string(o)).bytes;
      const double ratio = golden::parity_ratio(golden::twice(problem.parity), specs[o], published,
                                                [&](std::size_t i) { return golden::value_of(specs[o], mine, i); });
      EXPECT_LE(ratio, 1) << cases[c]->name << ", output " << o;
    }
  }
}

/// Every case of the tiny deck's first shape, judged as a submission would be.
TEST_P(ReferencePy, PassesOurOwnCases) {
  struct Drawn {
    const Case* of;
    std::vector<std::string> bytes;
    std::vector<fs::path> outputs;
  };
  const Deck deck = find_deck("cpu-tiny");
  const Shape shape = deck.shapes_of(problem).front().shape;
  const std::vector<TensorSpec> specs = problem.tensors(shape);
  const auto first_output = static_cast<std::size_t>(
      std::find_if(specs.begin(), specs.end(), [](const auto& s) { return s.role == Role::output; }) - specs.begin());
  const auto first_input = static_cast<std::size_t>(
      std::find_if(specs.begin(), specs.end(), [](const auto& s) { return s.role == Role::input; }) - specs.begin());

  std::vector<Drawn> drawn;
  std::vector<fs::path> folders;
  for (const Case& c : problem.cases) {
    if (c.applies && !c.applies(shape)) continue;
    Drawn one{&c, {}, {}};
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < first_output; ++i) one.bytes.emplace_back(specs[i].bytes(), '\0');
    for (std::size_t i = 0; i < first_output; ++i)
      views.push_back({&specs[i], reinterpret_cast<std::byte*>(one.bytes[i].data())});
    const DrawKey key{"0123456789abcdef", problem.id, problem.version, shape, c.name, 0};
    if (c.fill_state) c.fill_state(key, std::span(views).first(first_input));
    c.fill(key, views);
    folders.push_back(work_.path() / c.name);
    CaseWriter writer(folders.back(), shape);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const fs::path file = writer.add(name_of(specs[i].role), specs[i].name, name_of(specs[i].dtype), specs[i].dims,
                                       i < first_output ? one.bytes[i] : "");
      if (i >= first_output) one.outputs.push_back(file);
    }
    writer.finish(drawn.empty());
    drawn.push_back(std::move(one));
  }
  run(folders);
  if (HasFatalFailure()) return;
  for (const Drawn& one : drawn) {
    std::vector<ConstTensorView> given;
    for (std::size_t i = 0; i < first_output; ++i)
      given.emplace_back(&specs[i], reinterpret_cast<const std::byte*>(one.bytes[i].data()));
    std::vector<std::string> answers;
    for (const fs::path& file : one.outputs) answers.push_back(read_text(file));
    std::vector<ConstTensorView> outputs;
    for (std::size_t o = 0; o < answers.size(); ++o) {
      ASSERT_EQ(answers[o].size(), specs[first_output + o].bytes());
      outputs.emplace_back(&specs[first_output + o], reinterpret_cast<const std::byte*>(answers[o].data()));
    }
    const Comparison comparison = problem.compare(shape, *one.of, given, problem.oracle(shape, given), outputs);
    EXPECT_TRUE(comparison.pass) << one.of->name << ": error / bound " << comparison.worst << ", "
                                 << (comparison.mismatch ? comparison.mismatch->rule : "");
  }
}

std::vector<std::string> ids() {
  std::vector<std::string> all;
  for (const Problem& problem : all_problems()) all.push_back(problem.id);
  return all;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(All, ReferencePy, testing::ValuesIn(ids()), test_name);

}  // namespace
}  // namespace kbh
