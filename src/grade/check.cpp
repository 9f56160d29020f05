#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "grade/stages.hpp"
#include "grade/verify.hpp"

namespace kbh {
namespace {

// Two places of each kind (ending at and starting behind an unmapped page), so that addresses change from call to call.
constexpr int kSlots = 4;
// Wrong answers are collected up to this many, so that the report shows which cases fail and not only the first.
constexpr std::size_t kMaxWrong = 8;
// On a neighbouring shape: the nominal case and this many others, drawn anew for every grade.
constexpr std::size_t kNeighbourCases = 2;

struct Draw {
  const Case* data = nullptr;
  int trial = 0;
};

/// Nominal first (its failure is the easiest to understand), then all others in random order.
std::vector<Draw> draws_of(const Problem& problem, const Shape& shape, int seeds, std::mt19937_64& order) {
  std::vector<Draw> draws;
  for (const Case& c : problem.cases)
    for (int trial = 0; trial < seeds; ++trial)
      if (!c.applies || c.applies(shape)) draws.push_back({&c, trial});
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
      check_shape(shape, true, draws_of(context_.problem, shape, context_.deck.sampling.check_seeds, order_));
      if (!context_.problem.neighbours) continue;
      for (const Shape& neighbour : context_.problem.neighbours(shape)) {
        if (finding_) break;
        std::vector<Draw> draws = draws_of(context_.problem, neighbour, 1, order_);
        if (draws.size() > 1 + kNeighbourCases) draws.resize(1 + kNeighbourCases);
        check_shape(neighbour, false, draws);
      }
    }
    tell("", static_cast<int>(shapes.size()), static_cast<int>(shapes.size()));
    summarise_wrong();
    StageResult<CheckReport> result{std::move(report_), finding_};
    result.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
  }

 private:
  void tell(const std::string& text, int done, int total) const {
    if (context_.progress.step) context_.progress.step(text, done, total);
  }

  void check_shape(const Shape& shape, bool listed, const std::vector<Draw>& draws) {
    const Problem& problem = context_.problem;
    const DrawKey state_key{seed_, problem.id, problem.version, shape, problem.nominal().name, -1};
    const auto failure = session_.open_shape(shape, problem.tensors(shape), kSlots, 1, [&](int, auto state) {
      if (!state.empty()) problem.nominal().fill(state_key, state);
    });
    if (failure) return stop(finding_of(*failure, Stage::check, shape.text()));
    for (const Draw& draw : draws) {
      if (finding_ || wrong_.size() >= kMaxWrong) return;
      check_draw(shape, listed, draw);
    }
  }

  void check_draw(const Shape& shape, bool listed, const Draw& draw) {
    const Problem& problem = context_.problem;
    if (auto late = check_deadline(context_, Stage::check)) return stop(*late);
    const DrawKey key{seed_, problem.id, problem.version, shape, draw.data->name, draw.trial};
    const int slot = static_cast<int>(order_() % kSlots);
    draw.data->fill(key, session_.slot(slot).tensors);
    if (!check_call(shape, listed, draw, slot, false)) return;
    if (draw.data->kind != CaseKind::in_place) return;
    draw.data->change(key, session_.slot(slot).tensors);
    check_call(shape, listed, draw, slot, true);
  }

  /// False when the grade ends here or the answer was wrong.
  bool check_call(const Shape& shape, bool listed, const Draw& draw, int slot, bool changed) {
    const std::string where = fmt::format("case {} of {}{}{}", draw.data->name, shape.text(),
                                          listed ? "" : " (a neighbour of the listed shapes)",
                                          changed ? ", after a few elements changed in place" : "");
    session_.poison(slot);
    const int slots[] = {slot};
    CallReport call;
    if (const auto failure = session_.call(slots, &call)) return stop(finding_of(*failure, Stage::check, where)), false;
    if (auto overrun = check_canaries(session_, slot, Stage::check, where)) return stop(*overrun), false;
    CheckedCall checked{draw.data->name, shape,   listed,
                        draw.trial,      changed, compare_slot(context_.problem, shape, session_, slot)};
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
};

}  // namespace

StageResult<CheckReport> check_stage(const GradeContext& context, const Seed& seed, Session& session) {
  return Checker(context, seed, session).run();
}

}  // namespace kbh
