// plan: the launches of a sealed submission, asked for in a process without GPU or data, then checked.
#include <fmt/core.h>

#include "base/files.hpp"
#include "grade/stages.hpp"
#include "inspect/plan_rules.hpp"
#include "lane/sealed/planner.hpp"

namespace kbh {
namespace {

Finding finding(Verdict verdict, std::string what, std::string next) {
  Finding f;
  f.verdict = verdict;
  f.stage = Stage::plan;
  f.what = std::move(what);
  f.next = std::move(next);
  return f;
}

std::vector<PlannedShape> shapes_of(const GradeContext& context) {
  std::vector<PlannedShape> shapes;
  for (const DeckShape& listed : context.deck.shapes_of(context.problem)) {
    shapes.push_back({listed.shape, true, {}});
    for (const Shape& neighbour : context.problem.neighbours(listed.shape)) shapes.push_back({neighbour, false, {}});
  }
  return shapes;
}

}  // namespace

StageResult<PlanReport> plan_stage(const GradeContext& context, const BuildResult& build) {
  StageResult<PlanReport> result;
  PlanReport& report = result.report;
  report.cubin_bytes = read_text(build.artifact.parent_path() / "submission.cubin");
  report.cubin = read_cubin(report.cubin_bytes);
  report.shapes = shapes_of(context);
  std::vector<Shape> shapes;
  for (const PlannedShape& s : report.shapes) shapes.push_back(s.shape);
  sealed::Planning planning = sealed::plan(build.artifact, shapes, context.options.level, context.deck.limits);
  if (context.save) context.save("plan.log", planning.log);
  if (!planning.problem.empty()) {
    result.finding = finding(planning.timed_out ? Verdict::timed_out : Verdict::rejected, planning.problem,
                             "the plan function runs once per shape, without a GPU: it may only describe launches");
    return result;
  }
  Json record = Json::array();
  for (std::size_t i = 0; i < report.shapes.size(); ++i) {
    PlannedShape& planned = report.shapes[i];
    if (i < planning.plans.size()) planned.plan = std::move(planning.plans[i]);
    record.push_back({{"shape", planned.shape.text()}, {"listed", planned.listed}, {"plan", to_json(planned.plan)}});
    const auto wrong = sealed::refusal(planned.plan, context.problem, planned.shape, report.cubin, {});
    if (!wrong) continue;
    result.finding = finding(Verdict::rejected, *wrong, "docs/sealed.md says what a plan may hold");
    result.finding->details.push_back(
        fmt::format("at {}{}", planned.shape.text(), planned.listed ? "" : " (a neighbour of the listed shapes)"));
    break;
  }
  if (context.save) context.save("plan.json", to_text({{"schema", "kbh.plans/1"}, {"plans", record}}));
  return result;
}

}  // namespace kbh
