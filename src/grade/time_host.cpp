#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "grade/stages.hpp"
#include "grade/timed_slots.hpp"
#include "grade/verify.hpp"

namespace kbh {
namespace {

using Clock = std::chrono::steady_clock;

// Ring of slots. Samples use them in random order; a batch takes up to all of them, each with fresh data.
constexpr int kSlots = 12;
// Weights rotate too: none may stay in a cache, nor be remembered by its address.
constexpr int kStates = 3;
constexpr int kWarmupCalls = 10;
constexpr double kWarmupSeconds = 0.1;
constexpr int kBatchRepeats = 2;
constexpr int kPilotSamples = 3;
// The clocks of a process with foreign code are claims; ours sees wake-ups and scheduling too (architecture section 7).
constexpr double kClockShare = 1.25;
constexpr double kClockSlackUs = 50;
// Scheduling delays only ever add, to any sample, and most of them the kernel itself accounts for (waited_us). So a few
// samples that agree clear a submission: real work hides in none of them, a busy machine spares some. (On two
// processors with three endless loops beside it, 5 of 60 honest grades were accused by the quantile of two attempts of
// three samples.) Who forges some samples only gains nothing: least_cost_us of score.cpp is our clock.
constexpr double kAgreeingShare = 0.1;
constexpr int kAttempts = 5;
constexpr double kFloorQuantile = 0.1;

/// Whether our clock can be reconciled with the claim of the same sample.
bool agrees(const Sample& sample) {
  return sample.grader_us - sample.waited_us <= kClockShare * sample.worker_us + kClockSlackUs;
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class ShapeTimer {
 public:
  ShapeTimer(const GradeContext& context, const Seed& seed, host::Session& session, cpu::CacheFlusher& flusher,
             cpu::MemoryProbe& memory, const DeckShape& deck_shape)
      : context_(context),
        session_(session),
        flusher_(flusher),
        memory_(memory),
        shape_(deck_shape.shape),
        slots_(context, seed, session, deck_shape.shape),
        random_(std::random_device{}()) {
    timing_.shape = deck_shape.shape;
    timing_.regime = deck_shape.regime;
  }

  /// Nothing, or why the grade ends.
  std::optional<Finding> run() {
    if (auto failure = slots_.open(kSlots, kStates)) return failure;
    if (!warm_up()) return finding_;
    for (timing_.attempts = 1; timing_.attempts <= kAttempts; ++timing_.attempts) {
      if (!take_samples() || !take_batches()) return finding_;
      summarise();
      if (timing_.clocks_agree) break;
    }
    timing_.attempts = std::min(timing_.attempts, kAttempts);
    return std::nullopt;
  }

  [[nodiscard]] ShapeTiming result() && { return std::move(timing_); }

 private:
  /// Calls on the slots and compares every output. False when the grade ends.
  bool call(const std::vector<int>& slots, host::CallReport* report) {
    if (const auto failure = session_.call(slots, report))
      return end(finding_of(*failure, Stage::time, slots_.where()));
    for (const int slot : slots)
      if (auto wrong = slots_.verify(slot)) return end(*wrong);
    return true;
  }

  bool end(Finding finding) {
    finding_ = std::move(finding);
    return false;
  }

  /// With other data than what is timed.
  bool warm_up() {
    const auto begin = Clock::now();
    for (int i = 0; i < kWarmupCalls && seconds_since(begin) < kWarmupSeconds; ++i) {
      const int slot = i % kSlots;
      slots_.fill(slot);
      host::CallReport report;
      if (!call({slot}, &report)) return false;
    }
    return true;
  }

  bool take_sample(Sample* sample) {
    if (auto late = check_deadline(context_, Stage::time)) return end(*late);
    sample->slot = static_cast<int>(random_() % kSlots);
    slots_.fill(sample->slot);
    flusher_.flush();
    sample->probe_ns = cpu::speed_probe_ns();
    sample->memory_us = memory_.read_us();
    host::CallReport report;
    if (!call({sample->slot}, &report)) return false;
    sample->worker_us = report.worker_us.front();
    sample->grader_us = std::max(0.0, report.grader_us - session_.empty_call_us());
    sample->waited_us = report.waited_us;
    // A late writer may hide behind the first call's good manners: look again at unpredictable moments.
    if (random_() % 8 != 0) return true;
    auto restless = check_stillness(session_, sample->slot, Stage::time, slots_.where());
    return restless ? end(*restless) : true;
  }

  bool take_samples() {
    timing_.samples.clear();
    const DeckSampling& sampling = context_.deck.sampling;
    const auto begin = Clock::now();
    Sample sample;
    for (int i = 0; i < kPilotSamples; ++i)
      if (!take_sample(&sample)) return false;
    const double each = seconds_since(begin) / kPilotSamples;
    const int count =
        std::clamp(static_cast<int>(sampling.seconds_per_shape / each), sampling.min_samples, sampling.max_samples);
    for (int i = 0; i < count; ++i) {
      if (!take_sample(&sample)) return false;
      timing_.samples.push_back(sample);
      if (context_.progress.step) context_.progress.step(shape_.text(), i + 1, count);
    }
    return true;
  }

  /// Time of `count` calls in a row on our clock, each on its own fresh slot.
  bool time_batch(std::vector<int>& slots, std::size_t count, double* microseconds) {
    std::shuffle(slots.begin(), slots.end(), random_);
    const std::vector<int> chosen(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(count));
    for (const int slot : chosen) slots_.fill(slot);
    flusher_.flush();  // or the write-back of our own fills would be billed to the calls
    host::CallReport report;
    if (!call(chosen, &report)) return false;
    *microseconds = report.grader_us;
    return true;
  }

  /// Slope between two batch sizes: what a call costs without the constant part of waking up.
  bool take_batches() {
    std::vector<int> slots(kSlots);
    std::iota(slots.begin(), slots.end(), 0);
    double best = 0;
    for (int repeat = 0; repeat < kBatchRepeats; ++repeat) {
      const std::size_t few = 1 + random_() % 2;
      const std::size_t many = kSlots - random_() % 4;
      double few_us = 0;
      double many_us = 0;
      if (!time_batch(slots, few, &few_us) || !time_batch(slots, many, &many_us)) return false;
      const double each = (many_us - few_us) / static_cast<double>(many - few);
      if (each > 0 && (best == 0 || each < best)) best = each;
    }
    timing_.batch_us = best;
    return true;
  }

  void summarise() {
    std::vector<double> worker;
    std::vector<double> grader;
    std::vector<double> probe;
    std::vector<double> memory;
    for (const Sample& sample : timing_.samples) {
      worker.push_back(sample.worker_us);
      grader.push_back(sample.grader_us);
      probe.push_back(sample.probe_ns);
      memory.push_back(sample.memory_us);
    }
    timing_.median_us = median(worker);
    timing_.interval_us = median_interval(worker);
    timing_.grader_us = quantile(grader, kFloorQuantile);
    timing_.memory_us = quantile(memory, 0.25);
    timing_.memory_bytes = memory_.bytes();
    timing_.speed_spread = (quantile(probe, 0.9) - quantile(probe, 0.1)) / median(probe);
    const std::size_t all = timing_.samples.size();
    const auto agreeing =
        static_cast<std::size_t>(std::count_if(timing_.samples.begin(), timing_.samples.end(), agrees));
    timing_.disagreeing = static_cast<int>(all - agreeing);
    const bool plausible = *std::min_element(worker.begin(), worker.end()) > 0;
    timing_.clocks_agree =
        plausible && static_cast<double>(agreeing) >= std::max(1.0, kAgreeingShare * static_cast<double>(all));
  }

  const GradeContext& context_;
  host::Session& session_;
  cpu::CacheFlusher& flusher_;
  cpu::MemoryProbe& memory_;
  Shape shape_;
  TimedSlots slots_;
  std::mt19937_64 random_;
  ShapeTiming timing_;
  std::optional<Finding> finding_;
};

}  // namespace

StageResult<TimingReport> time_stage(const GradeContext& context, const Seed& seed, host::Session& session,
                                     cpu::CacheFlusher& flusher, cpu::MemoryProbe& memory) {
  const auto begin = Clock::now();
  StageResult<TimingReport> result;
  result.report.empty_call_us = session.empty_call_us();
  const auto& shapes = context.deck.shapes_of(context.problem);
  for (std::size_t i = 0; i < shapes.size() && !result.finding; ++i) {
    if (context.options.shape && *context.options.shape != i) continue;
    ShapeTimer timer(context, seed, session, flusher, memory, shapes[i]);
    result.finding = timer.run();
    if (!result.finding) result.report.shapes.push_back(std::move(timer).result());
  }
  result.report.seconds = seconds_since(begin);
  return result;
}

}  // namespace kbh
