// What the grader computes itself, per sample and shape: drawing the inputs, and the exact comparison.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "problem/registry.hpp"

namespace {

using kbh::ConstTensorView;
using kbh::DrawKey;
using kbh::Problem;
using kbh::Role;
using kbh::Shape;
using kbh::TensorSpec;
using kbh::TensorView;

struct Free {
  void operator()(std::byte* data) const { std::free(data); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

/// Every tensor of one shape, in ordinary memory.
struct Tensors {
  explicit Tensors(const Problem& problem, const Shape& shape) : specs(problem.tensors(shape)) {
    for (const TensorSpec& spec : specs) {
      buffers.emplace_back(static_cast<std::byte*>(std::aligned_alloc(64, (spec.bytes() + 63) / 64 * 64)));
      const TensorView view{&spec, buffers.back().get()};
      (spec.role == Role::output ? outputs : given).push_back(view);
    }
  }

  [[nodiscard]] std::vector<ConstTensorView> given_const() const { return {given.begin(), given.end()}; }
  [[nodiscard]] std::int64_t given_bytes() const {
    std::int64_t sum = 0;
    for (const TensorView& view : given) sum += static_cast<std::int64_t>(view.spec->bytes());
    return sum;
  }

  std::vector<TensorSpec> specs;
  std::vector<Buffer> buffers;
  std::vector<TensorView> given;
  std::vector<TensorView> outputs;
};

const Shape kShape{{{"batch", 64}, {"n", 8192}, {"k", 8}}};

DrawKey key_of(const Problem& problem, int trial) {
  return {kbh::Seed(16, '\x5a'), problem.id, problem.version, kShape, problem.nominal().name, trial};
}

void draw(benchmark::State& state) {
  const Problem& problem = kbh::find_problem("05_topk");
  const Tensors tensors(problem, kShape);
  int trial = 0;
  for (auto _ : state) problem.nominal().fill(key_of(problem, trial++), tensors.given);
  state.SetBytesProcessed(state.iterations() * tensors.given_bytes());
}
BENCHMARK(draw)->Unit(benchmark::kMillisecond);

void oracle(benchmark::State& state) {
  const Problem& problem = kbh::find_problem("05_topk");
  const Tensors tensors(problem, kShape);
  problem.nominal().fill(key_of(problem, 0), tensors.given);
  const std::vector<ConstTensorView> given = tensors.given_const();
  for (auto _ : state) benchmark::DoNotOptimize(problem.oracle(kShape, given));
  state.SetBytesProcessed(state.iterations() * tensors.given_bytes());
}
BENCHMARK(oracle)->Unit(benchmark::kMillisecond);

/// The right answer: the comparison must then look at every element.
void answer(const Tensors& tensors) {
  const auto batch = static_cast<std::size_t>(kShape["batch"]);
  const auto n = static_cast<std::size_t>(kShape["n"]);
  const auto k = static_cast<std::size_t>(kShape["k"]);
  const std::span<float> x = tensors.given[0].as<float>();
  std::vector<std::int64_t> order(n);
  for (std::size_t row = 0; row < batch; ++row) {
    const std::span<float> values = x.subspan(row * n, n);
    const auto greater = [&](std::int64_t a, std::int64_t b) {
      return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    };
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(), greater);
    for (std::size_t i = 0; i < k; ++i) {
      tensors.outputs[0].as<float>()[row * k + i] = values[static_cast<std::size_t>(order[i])];
      tensors.outputs[1].as<std::int64_t>()[row * k + i] = order[i];
    }
  }
}

void compare(benchmark::State& state) {
  const Problem& problem = kbh::find_problem("05_topk");
  const Tensors tensors(problem, kShape);
  problem.nominal().fill(key_of(problem, 0), tensors.given);
  answer(tensors);
  const std::vector<ConstTensorView> given = tensors.given_const();
  const std::vector<ConstTensorView> outputs{tensors.outputs.begin(), tensors.outputs.end()};
  const kbh::Expected expected = problem.oracle(kShape, given);
  for (auto _ : state) {
    if (!problem.compare(kShape, problem.nominal(), given, expected, outputs).pass)
      return state.SkipWithError("the right answer failed");
  }
  state.SetBytesProcessed(state.iterations() * tensors.given_bytes());
}
BENCHMARK(compare)->Unit(benchmark::kMillisecond);

}  // namespace
