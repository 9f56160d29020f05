// The stages of a grade, in order. Each returns what it found; a Finding ends the grade.
#pragma once

#include <optional>

#include "device/cpu/flush.hpp"
#include "device/cpu/memory_probe.hpp"
#include "grade/limits.hpp"
#include "grade/types.hpp"
#include "lane/host/session.hpp"

namespace kbh {
namespace sealed {
class Session;
}

template <typename Report>
struct StageResult {
  Report report;
  std::optional<Finding> finding;
};

/// build.cpp: sandboxed compiler.
StageResult<BuildResult> build_stage(const GradeContext& context, const Submission& submission);

/// plan.cpp: the sealed lane's launches for every shape, checked against tensors, cubin and limits.
StageResult<PlanReport> plan_stage(const GradeContext& context, const BuildResult& build);

/// inspect.cpp: symbols and labels, without loading anything.
StageResult<Evidence> inspect_stage(const GradeContext& context, const Submission& submission,
                                    const BuildResult& build);

/// check.cpp: every shape x case x seed, and neighbours of the listed shapes.
StageResult<CheckReport> check_stage(const GradeContext& context, const Seed& seed, Session& session);

/// time_host.cpp: cold samples of every shape; every timed output is compared.
StageResult<TimingReport> time_stage(const GradeContext& context, const Seed& seed, host::Session& session,
                                     cpu::CacheFlusher& flusher, cpu::MemoryProbe& memory);

/// time_sealed.cpp: the same on a GPU.
StageResult<TimingReport> time_stage(const GradeContext& context, const Seed& seed, sealed::Session& session);

/// audit.cpp: do clocks and evidence agree?
std::optional<Finding> audit_stage(const TimingReport& timing);

/// score.cpp
Score score_stage(const Deck& deck, const Problem& problem, const TimingReport& timing, const MachineLimits& machine);

}  // namespace kbh
