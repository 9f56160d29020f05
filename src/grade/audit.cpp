#include <fmt/core.h>

#include "grade/stages.hpp"

namespace kbh {

std::optional<Finding> audit_stage(const TimingReport& timing) {
  Finding finding;
  finding.verdict = Verdict::suspect;
  finding.stage = Stage::audit;
  for (const ShapeTiming& shape : timing.shapes)
    if (!shape.clocks_agree)
      finding.details.push_back(
          fmt::format("{}: {:.1f} us by the call's clock, {:.1f} us by the grader's ({} attempts)", shape.shape.text(),
                      shape.median_us, shape.grader_us, shape.attempts));
  if (finding.details.empty()) return std::nullopt;
  if (!timing.shapes.front().device_samples.empty()) {
    finding.what = "the device's clock and the host's disagree by more than 10 % + 25 us";
    finding.next = "the machine may have been busy: run it again";
    return finding;
  }
  finding.what = "the worker's clock and the grader's clock disagree by more than 25 % + 50 us";
  finding.next = "work may lie outside the measured call, or the machine was busy: run it again on a quiet machine";
  return finding;
}

}  // namespace kbh
