// What a grade pays around the submission's own time: finding the compiled object, starting a worker up to its first
// answer, and one sample without the submission.
#include "lane/host/session.hpp"

#include <benchmark/benchmark.h>

#include "base/hash.hpp"
#include "device/cpu/flush.hpp"
#include "lane/host/builder.hpp"
#include "problem/registry.hpp"

namespace {

using namespace kbh;

const Problem& topk() { return find_problem("05_topk"); }

Submission baseline() { return read_submission(KBH_SOURCE_DIR "/kernels/05_topk/host-cpu-baseline", Lane::host); }

host::SessionSpec spec_for(const Deck& deck, const std::filesystem::path& artifact) {
  host::SessionSpec spec;
  spec.artifact = artifact;
  spec.level = sandbox::support().level;
  spec.limits = deck.limits;
  spec.shared_bytes = std::int64_t{1} << 30;
  spec.calibration_calls = 0;
  return spec;
}

DrawKey key_for(const Shape& shape, int trial) {
  return {random_bytes(16), topk().id, topk().version, shape, topk().nominal().name, trial};
}

/// The second build of the same sources: hashing them and the cached object.
void compile_cache_hit(benchmark::State& state) {
  const Deck deck = find_deck("cpu-tiny");
  const Submission submission = baseline();
  host::build(submission, sandbox::support().level, deck.limits);
  for (auto _ : state) {
    const BuildResult result = host::build(submission, sandbox::support().level, deck.limits);
    if (!result.cached) return state.SkipWithError("not found in the cache");
  }
}
BENCHMARK(compile_cache_hit)->Unit(benchmark::kMillisecond);

/// From starting the sandboxed worker to the first compared answer (tiny shape, object in the cache).
void start_to_first_check(benchmark::State& state) {
  const Deck deck = find_deck("cpu-tiny");
  const Shape shape = deck.shapes_of(topk()).front().shape;
  const auto built = host::build(baseline(), sandbox::support().level, deck.limits);
  for (auto _ : state) {
    host::Session session(spec_for(deck, built.artifact));
    const int slots[] = {0};
    host::CallReport report;
    if (session.load() || session.open_shape(shape, topk().tensors(shape), 4, 1, nullptr))
      return state.SkipWithError("the worker failed");
    topk().nominal().fill(key_for(shape, 0), session.slot(0).tensors);
    if (session.call(slots, &report)) return state.SkipWithError("the call failed");
  }
}
BENCHMARK(start_to_first_check)->Unit(benchmark::kMillisecond)->UseRealTime();

/// One sample of a shape of deck cpu, less the submission's own time: drawing, flushing, letting run, stopping,
/// comparing.
void overhead_per_sample(benchmark::State& state) {
  const Deck deck = find_deck("cpu");
  const Shape shape = deck.shapes_of(topk())[1].shape;
  const auto built = host::build(baseline(), sandbox::support().level, deck.limits);
  host::Session session(spec_for(deck, built.artifact));
  cpu::CacheFlusher flusher;
  if (session.load() || session.open_shape(shape, topk().tensors(shape), 4, 1, nullptr))
    return state.SkipWithError("the worker failed");
  double theirs_us = 0;
  int trial = 0;
  for (auto _ : state) {
    const int slot = trial % 4;
    topk().nominal().fill(key_for(shape, trial++), session.slot(slot).tensors);
    session.poison(slot);
    flusher.flush();
    const int slots[] = {slot};
    host::CallReport report;
    if (session.call(slots, &report)) return state.SkipWithError("the call failed");
    theirs_us += report.worker_us.front();
    const SlotMemory& memory = session.slot(slot);
    const std::vector<ConstTensorView> inputs(memory.tensors.begin(), memory.tensors.end());
    const std::vector<ConstTensorView> outputs(memory.outputs.begin(), memory.outputs.end());
    if (!topk().compare(shape, topk().nominal(), inputs, topk().oracle(shape, inputs), outputs).pass)
      return state.SkipWithError("a wrong answer");
  }
  state.counters["submission_us"] = theirs_us / static_cast<double>(trial);
}
BENCHMARK(overhead_per_sample)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
