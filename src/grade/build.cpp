#include <fmt/core.h>

#include <sstream>

#include "grade/stages.hpp"
#include "lane/host/builder.hpp"
#include "lane/sealed/builder.hpp"

namespace kbh {
namespace {

constexpr std::size_t kShownLines = 12;

std::vector<std::string> first_lines(const std::string& text, std::size_t count) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; lines.size() < count && std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace

StageResult<BuildResult> build_stage(const GradeContext& context, const Submission& submission) {
  StageResult<BuildResult> result;
  const sandbox::Level level = context.options.level;
  result.report = submission.lane == Lane::sealed
                      ? sealed::build(submission, context.deck.arch, level, context.deck.limits)
                      : host::build(submission, level, context.deck.limits);
  if (context.save) context.save("build.log", fmt::format("$ {}\n{}", result.report.command, result.report.log));
  if (result.report.ok) return result;
  Finding finding;
  finding.stage = Stage::build;
  finding.verdict = result.report.timed_out ? Verdict::timed_out : Verdict::build_failed;
  finding.what = result.report.timed_out
                     ? fmt::format("the compiler took more than {:g} s", context.deck.limits.build_seconds)
                     : "the submission does not compile";
  finding.details = first_lines(result.report.log, kShownLines);
  finding.next = "the whole log is build.log of the record";
  result.finding = finding;
  return result;
}

}  // namespace kbh
