#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "base/error.hpp"
#include "grade/stages.hpp"
#include "grade/verify.hpp"
#include "problem/compare.hpp"

namespace kbh {
namespace {

// Two places of each kind (ending at and starting behind an unmapped page), so that addresses change from call to call.
constexpr int kSlots = 4;
// Slots take turns in using them, so that neighbouring slots differ.
constexpr int kStates = 2;
constexpr int kOtherTrial = 1'000'000;  // of the other state's draw
// Wrong answers are collected up to this many, so that the report shows which cases fail and not only the first.
constexpr std::size_t kMaxWrong = 8;
// On a neighbouring shape: the nominal case and this many others, drawn anew for every grade.
constexpr std::size_t kNeighbourCases = 2;

struct Draw {
  const Case* data = nullptr;
  int trial = 0;
};

/// Nominal first (its failure is the easiest to understand), then all others in random order.
std::vector<Draw> draws_of(const Problem& problem, const Shape& shape, const std::vector<std::string>& only, int seeds,
                           std::mt19937_64& order) {
  const auto wanted = [&](const Case& c) {
    return (only.empty() || std::find(only.begin(), only.end(), c.name) != only.end()) &&
           (!c.applies || c.applies(shape));
  };
  std::vector<Draw> draws;
  for (const Case& c : problem.cases)
    for (int trial = 0; trial < seeds && wanted(c); ++trial) draws.push_back({&c, trial});
  std::shuffle(draws.begin(), draws.end(), order);
  std::stable_partition(draws.begin(), draws.end(), [](const Draw& d) { return d.data->nominal; });
  return draws;
}

class Checker {
 public:
  Checker(const GradeContext& context, Seed seed, Session& session)
      : context_(context), seed_(std::move(seed)), session_(session), order_(std::random_device{}()) {}

  StageResult<CheckReport> run() {
    const auto begin = std::chrono::steady_clock::now();
    const auto& shapes = context_.deck.shapes_of(context_.problem);
    for (std::size_t i = 0; i < shapes.size() && !finding_; ++i) {
      if (context_.options.shape && *context_.options.shape != i) continue;
      const Shape& shape = shapes[i].shape;
      tell(shape.text(), static_cast<int>(i), static_cast<int>(shapes.size()));
      check_shape(
          shape, true,
          draws_of(context_.problem, shape, context_.options.cases, context_.deck.sampling.check_seeds, order_));
      if (!context_.problem.neighbours || !context_.options.cases.empty()) continue;
      for (const Shape& neighbour : context_.problem.neighbours(shape)) {
        if (finding_) break;
        std::vector<Draw> draws = draws_of(context_.problem, neighbour, {}, 1, order_);
        if (draws.size() > 1 + kNeighbourCases) draws.resize(1 + kNeighbourCases);
        check_shape(neighbour, false, draws);
      }
    }
    tell("", static_cast<int>(shapes.size()), static_cast<int>(shapes.size()));
    summarise_wrong();
    report_.upstream_pass = upstream_pass(shapes.size());
    StageResult<CheckReport> result{std::move(report_), finding_};
    result.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
  }

 private:
  /// Unknown unless every shape met every case of upstream's.
  [[nodiscard]] std::optional<bool> upstream_pass(std::size_t shapes) const {
    std::size_t accepted = 0;
    for (const CheckedCall& call : report_.calls) {
      if (call.upstream == false) return false;
      accepted += call.upstream.has_value() ? 1 : 0;
    }
    const auto cases = std::count_if(context_.problem.cases.begin(), context_.problem.cases.end(),
                                     [](const Case& c) { return c.upstream.has_value(); });
    if (cases == 0 || accepted < shapes * static_cast<std::size_t>(cases)) return std::nullopt;
    return true;
  }

  void tell(const std::string& text, int done, int total) const {
    if (context_.progress.step) context_.progress.step(text, done, total);
  }

  void check_shape(const Shape& shape, bool listed, const std::vector<Draw>& draws) {
    const Problem& problem = context_.problem;
    const int states = problem.has_state() ? kStates : 1;
    const auto failure = session_.open_shape(shape, problem.tensors(shape), kSlots, states, [&](int i, auto state) {
      if (problem.has_state()) problem.nominal().fill_state(key_of(shape, problem.nominal(), -1 - i), state);
    });
    if (failure) return stop(finding_of(*failure, Stage::check, shape.text()));
    for (const Draw& draw : draws) {
      if (finding_ || wrong_.size() >= kMaxWrong) return;
      check_draw(shape, listed, draw);
    }
  }

  [[nodiscard]] DrawKey key_of(const Shape& shape, const Case& data, int trial) const {
    return {seed_, context_.problem.id, context_.problem.version, shape, data.name, trial};
  }

  /// Draws everything that a slot's call reads; a new state gets a new object. False when the grade ends here.
  bool fill(const Shape& shape, const Draw& draw, int trial, int slot) {
    const DrawKey key = key_of(shape, *draw.data, trial);
    const std::span<const TensorView> tensors = session_.slot(slot).tensors;
    if (draw.data->fill_state) draw.data->fill_state(key, state_of(tensors));
    draw.data->fill(key, tensors);
    if (!draw.data->fill_state) return true;
    const auto failure = session_.recreate(session_.state_of(slot));
    if (failure) stop(finding_of(*failure, Stage::check, place(shape, draw, "")));
    return !failure;
  }

  void check_draw(const Shape& shape, bool listed, const Draw& draw) {
    if (auto late = check_deadline(context_, Stage::check)) return stop(*late);
    const int slot = static_cast<int>(order_() % kSlots);
    if (!fill(shape, draw, draw.trial, slot)) return;
    switch (draw.data->kind) {
      case CaseKind::single:
        check_call(shape, listed, draw, slot, "");
        return;
      case CaseKind::repeated:
        return check_repeated(shape, listed, draw, slot);
      case CaseKind::two_states:
        return check_two_states(shape, listed, draw, slot);
    }
  }

  void check_repeated(const Shape& shape, bool listed, const Draw& draw, int slot) {
    const DrawKey key = key_of(shape, *draw.data, draw.trial);
    if (!check_call(shape, listed, draw, slot, "")) return;
    for (int step = 1; step < draw.data->calls; ++step) {
      draw.data->change(key, step, session_.slot(slot).tensors, expected_);
      if (!check_call(shape, listed, draw, slot, ", after the inputs changed in place")) return;
    }
  }

  /// The other slot of the pair uses the other state.
  void check_two_states(const Shape& shape, bool listed, const Draw& draw, int slot) {
    const int other = slot ^ 1;
    expect(session_.state_of(other) != session_.state_of(slot), "neighbouring slots use different states");
    if (!fill(shape, draw, draw.trial + kOtherTrial, other)) return;
    for (const int next : {slot, other, slot})
      if (!check_call(shape, listed, draw, next, ", two states in turn")) return;
  }

  static std::string place(const Shape& shape, const Draw& draw, std::string_view which) {
    return fmt::format("case {} of {}{}", draw.data->name, shape.text(), which);
  }

  /// False when the grade ends here or the answer was wrong.
  bool check_call(const Shape& shape, bool listed, const Draw& draw, int slot, std::string_view which) {
    const std::string where = place(shape, draw, which) + (listed ? "" : " (a neighbour of the listed shapes)");
    session_.poison(slot);
    if (const auto failure = session_.run(slot)) return stop(finding_of(*failure, Stage::check, where)), false;
    if (auto overrun = check_canaries(session_, slot, Stage::check, where)) return stop(*overrun), false;
    const SlotData data = data_of(session_, slot);
    expected_ = context_.problem.oracle(shape, data.tensors);
    CheckedCall checked{
        draw.data->name, shape,
        listed,          draw.trial,
        !which.empty(),  context_.problem.compare(shape, *draw.data, data.tensors, expected_, data.outputs),
        std::nullopt};
    if (draw.data->upstream && listed)
      checked.upstream = accepted_upstream(*draw.data->upstream, expected_, data.outputs);
    const bool pass = checked.comparison.pass;
    if (!pass) wrong_.push_back(wrong_output(Stage::check, where, checked.comparison, context_.problem));
    report_.calls.push_back(std::move(checked));
    if (auto restless = check_stillness(session_, slot, Stage::check, where)) return stop(*restless), false;
    return pass;
  }

  void stop(Finding finding) { finding_ = std::move(finding); }

  void summarise_wrong() {
    // A wrong answer is the better explanation of a later crash than the crash itself.
    if (wrong_.empty()) return;
    finding_ = wrong_.front();
    if (wrong_.size() > 1) finding_->details.emplace_back("further wrong answers:");
    for (std::size_t i = 1; i < wrong_.size(); ++i) finding_->details.push_back("  " + wrong_[i].what);
    const bool only_neighbours = std::all_of(report_.calls.begin(), report_.calls.end(),
                                             [](const CheckedCall& c) { return !c.listed || c.comparison.pass; });
    if (only_neighbours)
      finding_->details.emplace_back("label: listed shapes only (every listed shape was right so far)");
  }

  const GradeContext& context_;
  Seed seed_;
  Session& session_;
  std::mt19937_64 order_;  // of calls only; data come from the seed
  CheckReport report_;
  std::vector<Finding> wrong_;
  std::optional<Finding> finding_;
  Expected expected_;  // the oracle's answer to the last call
};

}  // namespace

StageResult<CheckReport> check_stage(const GradeContext& context, const Seed& seed, Session& session) {
  return Checker(context, seed, session).run();
}

}  // namespace kbh
