#include <algorithm>

#include "base/files.hpp"
#include "grade/stages.hpp"

namespace kbh {

StageResult<Evidence> inspect_stage(const GradeContext&, const Submission& submission, const BuildResult& build) {
  StageResult<Evidence> result;
  result.report.census = read_elf(read_text(build.artifact));
  result.report.labels = labels_of(submission, result.report.census);
  if (submission.lane == Lane::sealed) return result;  // the plan stage has called what it must export
  const auto& exported = result.report.census.exported;
  if (std::find(exported.begin(), exported.end(), "kbh_run") != exported.end()) return result;
  Finding finding;
  finding.verdict = Verdict::rejected;
  finding.stage = Stage::inspect;
  finding.what = "the built object does not export kbh_run";
  const auto mangled = std::find_if(exported.begin(), exported.end(), [](const std::string& name) {
    return name.starts_with("_Z") && name.find("kbh_run") != std::string::npos;
  });
  if (mangled != exported.end()) finding.details.push_back("it exports " + *mangled + " (a C++ name)");
  finding.next =
      "#include <kbh/host.h> and define: int kbh_run(void* self, const kbh_tensor* inputs, int32_t n_inputs, "
      "const kbh_tensor* outputs, int32_t n_outputs, void* stream)";
  result.finding = finding;
  return result;
}

}  // namespace kbh
