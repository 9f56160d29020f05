// Cold samples of a sealed submission on a GPU: docs/timing.md, "On a GPU".
#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "grade/stages.hpp"
#include "grade/timed_slots.hpp"
#include "grade/verify.hpp"
#include "lane/sealed/session.hpp"

namespace kbh {
namespace {

using Clock = std::chrono::steady_clock;

// Slots and states rotate: neither addresses nor cached lines help the next call. More only where they are small.
constexpr int kFewestSlots = 4;
constexpr int kMostSlots = 16;
constexpr int kStates = 3;
constexpr int kWarmupCalls = 10;
constexpr double kWarmupSeconds = 0.5;
constexpr double kQuickWarmupSeconds = 0.1;
constexpr int kPilotSamples = 3;
// The device's events and the host's clock around the same call: the host sees the gate open and the end reach it too.
constexpr double kClockShare = 1.10;
constexpr double kClockSlackUs = 25;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class SealedTimer {
 public:
  SealedTimer(const GradeContext& context, const Seed& seed, sealed::Session& session, const DeckShape& deck_shape)
      : context_(context),
        session_(session),
        slots_(context, seed, session, deck_shape.shape),
        count_(slot_count(context, deck_shape.shape)),
        random_(std::random_device{}()) {
    timing_.shape = deck_shape.shape;
    timing_.regime = deck_shape.regime;
  }

  /// Nothing, or why the grade ends.
  std::optional<Finding> run() {
    if (auto failure = slots_.open(count_, kStates)) return failure;
    if (!warm_up() || !take_samples() || !take_batch()) return finding_;
    summarise();
    return std::nullopt;
  }

  [[nodiscard]] ShapeTiming result() && { return std::move(timing_); }

 private:
  /// Together more than three times the cache, within reason.
  static int slot_count(const GradeContext& context, const Shape& shape) {
    std::int64_t bytes = 1;
    for (const TensorSpec& t : context.problem.tensors(shape))
      if (t.role != Role::state) bytes += static_cast<std::int64_t>(t.bytes());
    const std::int64_t wanted = 3 * (context.deck.l2_mib << 20) / bytes + 1;
    return static_cast<int>(std::clamp<std::int64_t>(wanted, kFewestSlots, kMostSlots));
  }

  bool end(Finding finding) {
    finding_ = std::move(finding);
    return false;
  }

  bool take_sample(DeviceSample* sample) {
    if (auto late = check_deadline(context_, Stage::time)) return end(*late);
    sample->slot = static_cast<int>(random_() % static_cast<unsigned>(count_));
    slots_.fill(sample->slot);
    sealed::Timed timed;
    if (const auto failure = session_.sample(sample->slot, cuda::Flush::clean, &timed))
      return end(finding_of(*failure, Stage::time, slots_.where()));
    sample->event_us = timed.event_us;
    sample->host_us = timed.host_us;
    sample->clock_mhz = timed.clock_mhz;
    if (auto wrong = slots_.verify(sample->slot)) return end(*wrong);
    return true;
  }

  /// Clocks rise and everything is loaded.
  bool warm_up() {
    const auto begin = Clock::now();
    const double enough = context_.options.quick ? kQuickWarmupSeconds : kWarmupSeconds;
    DeviceSample unused;
    for (int i = 0; i < kWarmupCalls || seconds_since(begin) < enough; ++i) {
      if (!take_sample(&unused)) return false;
      if (seconds_since(begin) > 4 * enough) break;
    }
    return true;
  }

  bool take_samples() {
    const DeckSampling& sampling = context_.deck.sampling;
    const auto begin = Clock::now();
    DeviceSample sample;
    for (int i = 0; i < kPilotSamples; ++i)
      if (!take_sample(&sample)) return false;
    const double each = seconds_since(begin) / kPilotSamples;
    const int count =
        std::clamp(static_cast<int>(sampling.seconds_per_shape / each), sampling.min_samples, sampling.max_samples);
    for (int i = 0; i < count; ++i) {
      if (!take_sample(&sample)) return false;
      timing_.device_samples.push_back(sample);
      if (context_.progress.step) context_.progress.step(timing_.shape.text(), i + 1, count);
    }
    return true;
  }

  /// All slots in a row after one flush, in secret order: for agreement only.
  bool take_batch() {
    std::vector<int> order(static_cast<std::size_t>(count_));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const int slot : order) slots_.fill(slot);
    sealed::Timed timed;
    if (const auto failure = session_.batch(order, &timed))
      return end(finding_of(*failure, Stage::time, slots_.where()));
    for (const int slot : order)
      if (auto wrong = slots_.verify(slot)) return end(*wrong);
    timing_.batch_us = timed.event_us / count_;
    return true;
  }

  void summarise() {
    std::vector<double> events;
    std::vector<double> hosts;
    std::vector<double> clocks;
    for (const DeviceSample& s : timing_.device_samples) {
      events.push_back(s.event_us);
      hosts.push_back(s.host_us);
      clocks.push_back(s.clock_mhz);
      timing_.disagreeing += s.host_us > kClockShare * s.event_us + kClockSlackUs || s.host_us < s.event_us ? 1 : 0;
    }
    timing_.median_us = median(events);
    timing_.interval_us = median_interval(events);
    timing_.grader_us = median(hosts);
    timing_.clock_mhz = median(clocks);
    timing_.speed_spread = (quantile(clocks, 0.9) - quantile(clocks, 0.1)) / timing_.clock_mhz;
    timing_.clocks_agree = 2 * timing_.disagreeing <= static_cast<int>(timing_.device_samples.size());
  }

  const GradeContext& context_;
  sealed::Session& session_;
  TimedSlots slots_;
  int count_;
  std::mt19937_64 random_;
  ShapeTiming timing_;
  std::optional<Finding> finding_;
};

}  // namespace

StageResult<TimingReport> time_stage(const GradeContext& context, const Seed& seed, sealed::Session& session) {
  const auto begin = Clock::now();
  StageResult<TimingReport> result;
  result.report.empty_call_us = session.floors().empty_kernel_us;
  result.report.nothing_us = session.floors().nothing_us;
  const auto& shapes = context.deck.shapes_of(context.problem);
  for (std::size_t i = 0; i < shapes.size() && !result.finding; ++i) {
    if (context.options.shape && *context.options.shape != i) continue;
    SealedTimer timer(context, seed, session, shapes[i]);
    result.finding = timer.run();
    if (!result.finding) result.report.shapes.push_back(std::move(timer).result());
  }
  result.report.seconds = seconds_since(begin);
  return result;
}

}  // namespace kbh
