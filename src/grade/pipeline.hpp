// admit -> build -> inspect -> check -> time -> audit -> score: one submission, one Grade.
#pragma once

#include <memory>

#include "device/cpu/flush.hpp"
#include "device/cpu/memory_probe.hpp"
#include "grade/limits.hpp"
#include "grade/types.hpp"

namespace kbh {

/// What several grades in one process share: made on first use.
class Workbench {
 public:
  cpu::CacheFlusher& flusher();
  cpu::MemoryProbe& memory_probe();
  /// Measured or from the cache; `again` after a submission beat them.
  const cpu::Ceilings& ceilings(const Progress& progress, bool again = false);
#ifdef KBH_WITH_CUDA
  const cuda::Ceilings& ceilings(const cuda::DeviceInfo& device, const Progress& progress, bool again = false);
#endif

 private:
  std::unique_ptr<cpu::CacheFlusher> flusher_;
  std::unique_ptr<cpu::MemoryProbe> memory_probe_;
  std::optional<cpu::Ceilings> ceilings_;
#ifdef KBH_WITH_CUDA
  std::map<std::string, cuda::Ceilings> cuda_ceilings_;  // by uuid
#endif
};

/// Never throws for what a submission does. Throws Error when this machine cannot grade (no compiler, no sandbox).
Grade grade(const GradeContext& context, Submission submission, Workbench& workbench);

/// The document of a grade, schema kbh.grade/1.
Json to_json(const Grade& grade, const Problem& problem, const Deck& deck);

/// 0 passed, 1 graded but not passed, 4 infra.
int exit_code(const Grade& grade);

/// "2026-11-30T18:17:46Z"
std::string utc_now();

}  // namespace kbh
