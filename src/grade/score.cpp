#include <algorithm>

#include "grade/limits.hpp"
#include "grade/stages.hpp"

namespace kbh {
namespace {

// What our clock may read above a call's true cost (architecture section 7).
constexpr double kClockSlackUs = 1;

/// The least that a call can have cost by our own clock, whatever the worker claims: the smaller of the slope over
/// batches and of the cold samples' floor, since a busy machine inflates either.
double least_cost_us(const ShapeTiming& timing) {
  if (timing.batch_us <= 0) return timing.grader_us;
  return std::min(timing.batch_us, timing.grader_us);
}

/// How much of its ceiling memory reached between the samples; 1 where nobody asked.
double memory_share(const ShapeTiming& timing, const MachineLimits& machine) {
  if (timing.memory_bytes == 0) return 1;
  return std::min(1.0, machine.cold_us(static_cast<double>(timing.memory_bytes)) / timing.memory_us);
}

/// The interval of the median, down to what memory and clock at their best would have made of it, up to what their
/// slower quartile makes (a median follows no rarer disturbance).
Interval widened(const ShapeTiming& timing, double share) {
  if (timing.samples.empty()) return timing.interval_us;
  std::vector<double> probe;
  std::vector<double> memory;
  for (const Sample& sample : timing.samples) {
    probe.push_back(sample.probe_ns);
    memory.push_back(sample.memory_us);
  }
  const double best = std::min(share, quantile(probe, 0.1) / median(probe));
  const double worst = std::max(quantile(memory, 0.75) / median(memory), quantile(probe, 0.75) / median(probe));
  return {timing.interval_us.low * best, timing.interval_us.high * worst};
}

ShapeScore score_shape(const Deck& deck, const Problem& problem, const ShapeTiming& timing,
                       const MachineLimits& machine) {
  const Work work = problem.work(timing.shape);
  ShapeScore score;
  score.shape = timing.shape;
  score.regime = timing.regime;
  // Where nothing foreign runs on the host, the device's events are our own clock.
  const double least = timing.samples.empty() ? 0 : least_cost_us(timing) - kClockSlackUs;
  score.time_us = std::max(timing.median_us, least);
  score.bounded = score.time_us > timing.median_us;
  score.interval_us = timing.interval_us;
  score.memory_share = memory_share(timing, machine);
  score.machine_interval_us = widened(timing, score.memory_share);
  const double seconds = score.time_us * 1e-6;
  score.gbs = work.min_bytes / seconds * 1e-9;
  score.gflops = work.flops / seconds * 1e-9;

  const Bound bound = bound_of(problem, timing.shape, deck.measured_peaks ? machine.peaks : datasheet_peaks(deck));
  const double compute_us = bound_of(problem, timing.shape, machine.peaks).compute_us;
  score.roofline_us = bound.roofline_us();
  score.roofline_fraction = score.roofline_us / score.time_us;
  score.attainable_fraction =
      (machine.call_floor_us + std::max(compute_us, machine.cold_us(work.min_bytes))) / score.time_us;
  score.upstream_fraction = bound.upstream_us / score.time_us;
  return score;
}

double mean_of(const std::vector<ShapeScore>& shapes, double ShapeScore::*field) {
  std::vector<double> values;
  for (const ShapeScore& shape : shapes) values.push_back(std::max(shape.*field, 1e-9));
  return geometric_mean(values);
}

}  // namespace

Score score_stage(const Deck& deck, const Problem& problem, const TimingReport& timing, const MachineLimits& machine) {
  Score score;
  for (const ShapeTiming& shape : timing.shapes) score.shapes.push_back(score_shape(deck, problem, shape, machine));
  score.peak_fraction = mean_of(score.shapes, &ShapeScore::upstream_fraction);
  score.roofline_fraction = mean_of(score.shapes, &ShapeScore::roofline_fraction);
  score.attainable_fraction = mean_of(score.shapes, &ShapeScore::attainable_fraction);
  if (deck.measured_peaks) score.relative_to = "this machine";
  score.ceilings_stale = std::any_of(score.shapes.begin(), score.shapes.end(),
                                     [](const ShapeScore& s) { return s.attainable_fraction > 1; });
  return score;
}

}  // namespace kbh
