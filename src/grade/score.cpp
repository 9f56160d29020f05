#include <algorithm>

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

ShapeScore score_shape(const Problem& problem, const ShapeTiming& timing, const cpu::Ceilings& ceilings) {
  const Work work = problem.work(timing.shape);
  ShapeScore score;
  score.shape = timing.shape;
  score.regime = timing.regime;
  score.time_us = std::max(timing.median_us, least_cost_us(timing) - kClockSlackUs);
  score.bounded = score.time_us > timing.median_us;
  score.interval_us = timing.interval_us;
  const double seconds = score.time_us * 1e-6;
  score.gbs = work.min_bytes / seconds * 1e-9;
  score.gflops = work.flops / seconds * 1e-9;

  const auto peak = ceilings.peak_gflops.find(std::string(name_of(work.flops_dtype)));
  const double peak_gflops = peak == ceilings.peak_gflops.end() ? 0 : peak->second;
  const double compute_us = peak_gflops > 0 ? work.flops / peak_gflops * 1e-3 : 0;
  const double memory_us = work.min_bytes / ceilings.memory_read_gbs() * 1e-3;
  const double cold_us = work.min_bytes / ceilings.cold_read_gbs_at(static_cast<std::int64_t>(work.min_bytes)) * 1e-3;
  score.roofline_us = std::max(compute_us, memory_us);
  score.roofline_fraction = score.roofline_us / score.time_us;
  score.attainable_fraction = (ceilings.call_floor_us + std::max(compute_us, cold_us)) / score.time_us;
  const double upstream_us = timing.regime == Regime::memory ? work.upstream_bytes / ceilings.memory_read_gbs() * 1e-3
                             : peak_gflops > 0               ? work.upstream_flops / peak_gflops * 1e-3
                                                             : 0;
  score.upstream_fraction = upstream_us / score.time_us;
  return score;
}

double mean_of(const std::vector<ShapeScore>& shapes, double ShapeScore::*field) {
  std::vector<double> values;
  for (const ShapeScore& shape : shapes) values.push_back(std::max(shape.*field, 1e-9));
  return geometric_mean(values);
}

}  // namespace

Score score_stage(const Deck& deck, const Problem& problem, const TimingReport& timing, const cpu::Ceilings& ceilings) {
  Score score;
  for (const ShapeTiming& shape : timing.shapes) score.shapes.push_back(score_shape(problem, shape, ceilings));
  score.peak_fraction = mean_of(score.shapes, &ShapeScore::upstream_fraction);
  score.roofline_fraction = mean_of(score.shapes, &ShapeScore::roofline_fraction);
  score.attainable_fraction = mean_of(score.shapes, &ShapeScore::attainable_fraction);
  if (deck.measured_peaks) score.relative_to = "this machine";
  score.ceilings_stale = std::any_of(score.shapes.begin(), score.shapes.end(),
                                     [](const ShapeScore& s) { return s.attainable_fraction > 1; });
  return score;
}

}  // namespace kbh
