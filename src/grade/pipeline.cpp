#include "grade/pipeline.hpp"

#include <malloc.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "device/cpu/topology.hpp"
#include "grade/stages.hpp"
#include "grade/verify.hpp"
#include "problem/matrix.hpp"
#ifdef KBH_WITH_CUDA
#include "device/cuda/matrix.hpp"
#include "lane/sealed/session.hpp"
#endif

namespace kbh {
namespace {

// Enough that some of them meet an undisturbed machine (each pays for a flush).
constexpr int kCalibrationCalls = 12;

/// Bytes of the buffers of the largest shape: what a worker must be able to map on top of its own memory limit.
std::int64_t shared_bytes(const GradeContext& context) {
  std::int64_t largest = 0;
  for (const DeckShape& deck_shape : context.deck.shapes_of(context.problem)) {
    std::int64_t bytes = 0;
    for (const TensorSpec& t : context.problem.tensors(deck_shape.shape)) bytes += static_cast<std::int64_t>(t.bytes());
    largest = std::max(largest, bytes);
  }
  constexpr std::int64_t kMostSlots = 16;
  constexpr std::int64_t kGuardsAndSlack = std::int64_t{64} << 20;
  return kMostSlots * largest + kGuardsAndSlack;
}

Seed seed_from_system() { return random_bytes(16); }

std::string hex(const Seed& seed) { return to_hex({reinterpret_cast<const std::uint8_t*>(seed.data()), seed.size()}); }

Json describe_processor() {
  const cpu::Topology& machine = cpu::topology();
  return {{"kind", "cpu"},
          {"name", machine.model},
          {"machine", cpu::machine_id()},
          {"processors", machine.processors.size()},
          {"llc_bytes", machine.llc_bytes},
          {"kernel", machine.kernel}};
}

#ifdef KBH_WITH_CUDA
// A flush sweeps so many times the second-level cache (timing.md: 512 MB + 256 MB leave least on an H200 with 60 MB).
constexpr std::int64_t kSweeps = 6;

Json describe(const cuda::DeviceInfo& device) {
  return {{"kind", "cuda"},
          {"name", device.name},
          {"uuid", device.uuid},
          {"multiprocessors", device.multiprocessors},
          {"l2_bytes", device.l2_bytes},
          {"memory_bytes", device.memory_bytes},
          {"cuda_driver", device.driver_version},
          {"max_clock_mhz", device.max_clock_khz / 1000},
          {"machine", cpu::machine_id()}};
}

const sealed::Plan& plan_of(const PlanReport& report, const Shape& shape) {
  const auto found = std::find_if(report.shapes.begin(), report.shapes.end(),
                                  [&](const PlannedShape& planned) { return planned.shape == shape; });
  expect(found != report.shapes.end(), "every shape that is opened was planned");
  return found->plan;
}
#endif

class Pipeline {
 public:
  Pipeline(const GradeContext& context, Submission submission, Workbench& workbench)
      : context_(context), workbench_(workbench) {
    grade_.submission = std::move(submission);
    grade_.options = context.options;
    grade_.started_at = utc_now();
  }

  Grade run() && {
    admit();
    if (!build() || !plan() || !inspect()) return std::move(grade_);
    if (context_.options.dry_run) {
      grade_.verdict = Verdict::not_graded;
      return std::move(grade_);
    }
    // Only now: nothing of the submission can have been chosen to fit it.
    seed_ = context_.options.seed.empty() ? seed_from_system() : context_.options.seed;
    run_worker();
    grade_.seed_hex = hex(seed_);  // shown when everything is over, for replay
    return std::move(grade_);
  }

 private:
  /// Runs one stage under its name and clock; true when the grade goes on.
  template <typename Body>
  bool stage(Stage which, Body body) {
    if (context_.progress.stage) context_.progress.stage(which);
    const auto begin = std::chrono::steady_clock::now();
    std::optional<Finding> finding = body();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    grade_.stage_seconds[std::string(name_of(which))] += seconds;
    if (!finding) return true;
    grade_.verdict = finding->verdict;
    grade_.finding = std::move(finding);
    return false;
  }

  void admit() {
    stage(Stage::admit, [&]() -> std::optional<Finding> {
      if (context_.save)
        for (const SourceFile& file : grade_.submission.files)
          context_.save("submission/" + file.path.string(), file.content);
      return std::nullopt;
    });
  }

  bool build() {
    return stage(Stage::build, [&] {
      auto result = build_stage(context_, grade_.submission);
      grade_.build = std::move(result.report);
      return result.finding;
    });
  }

  bool plan() {
    if (grade_.submission.lane != Lane::sealed) return true;
    return stage(Stage::plan, [&] {
      auto result = plan_stage(context_, grade_.build);
      grade_.plan = std::move(result.report);
      return result.finding;
    });
  }

  bool inspect() {
    return stage(Stage::inspect, [&] {
      auto result = inspect_stage(context_, grade_.submission, grade_.build);
      grade_.evidence = std::move(result.report);
      return result.finding;
    });
  }

  void run_worker() {
    if (context_.deck.device == "cuda") return run_on_gpu();
    grade_.device = describe_processor();
    const bool times = context_.options.mode != Mode::check;
    host::SessionSpec spec;
    spec.artifact = grade_.build.artifact;
    spec.level = context_.options.level;
    spec.limits = context_.deck.limits;
    spec.threads = static_cast<int>(cpu::topology().processors.size());
    spec.shared_bytes = shared_bytes(context_);
    spec.calibration_calls = times ? kCalibrationCalls : 0;
    spec.before_calibration_call = [&] { workbench_.flusher().flush(); };
    host::Session session(spec);
    const bool passed =
        check(session) &&
        time([&] { return time_stage(context_, seed_, session, workbench_.flusher(), workbench_.memory_probe()); }) &&
        audit() && score([&](bool again) {
          const cpu::Ceilings& ceilings = workbench_.ceilings(context_.progress, again);
          grade_.ceilings = cpu::to_json(ceilings);
          return limits_of(ceilings);
        });
    finish(session, passed);
  }

  void run_on_gpu() {
#ifdef KBH_WITH_CUDA
    const cuda::DeviceInfo device = cuda::device_info(context_.options.device);
    grade_.device = describe(device);
    sealed::SessionSpec spec;
    spec.cubin = grade_.build.artifact.parent_path() / "submission.cubin";
    spec.writable_globals = grade_.plan->cubin.writable_globals;
    spec.plan_of = [&](const Shape& shape) -> const sealed::Plan& { return plan_of(*grade_.plan, shape); };
    spec.level = context_.options.level;
    spec.limits = context_.deck.limits;
    spec.device = device.index;
    spec.sweep_bytes = kSweeps * device.l2_bytes;
    sealed::Session session(spec);
    cuda::Multiplier multiplier;
    const MultiplyElsewhere on_gpu(std::ref(multiplier));
    const bool passed = check(session) && time([&] { return time_stage(context_, seed_, session); }) && audit() &&
                        score([&](bool again) {
                          const cuda::Ceilings& ceilings = workbench_.ceilings(device, context_.progress, again);
                          grade_.ceilings = cuda::to_json(ceilings);
                          return limits_of(ceilings);
                        });
    finish(session, passed);
#else
    fail(ErrorKind::machine, "this kbh was built without CUDA");
#endif
  }

  void finish(const Session& session, bool passed) {
    grade_.worker_log = session.log();
    grade_.worker_log_truncated = session.log_truncated();
    if (context_.save) {
      const char* note = grade_.worker_log_truncated ? "\n[more was printed and dropped]\n" : "";
      context_.save("worker.log", grade_.worker_log + note);
    }
    if (passed) grade_.verdict = Verdict::pass;
  }

  bool check(Session& session) {
    return stage(Stage::check, [&]() -> std::optional<Finding> {
      if (const auto failure = session.load()) return finding_of(*failure, Stage::check, "");
      if (context_.options.mode == Mode::bench) return std::nullopt;
      auto result = check_stage(context_, seed_, session);
      grade_.check = std::move(result.report);
      return result.finding;
    });
  }

  template <typename Measure>
  bool time(Measure measure) {
    if (context_.options.mode == Mode::check) return true;
    return stage(Stage::time, [&] {
      auto result = measure();
      grade_.timing = std::move(result.report);
      return result.finding;
    });
  }

  bool audit() {
    if (!grade_.timing) return true;
    return stage(Stage::audit, [&] { return audit_stage(*grade_.timing); });
  }

  /// `limits(again)` gives the machine's, measured anew when `again`.
  template <typename Limits>
  bool score(Limits limits) {
    if (!grade_.timing) return true;
    return stage(Stage::score, [&]() -> std::optional<Finding> {
      grade_.score = score_stage(context_.deck, context_.problem, *grade_.timing, limits(false));
      if (!grade_.score->ceilings_stale) return std::nullopt;
      if (context_.progress.note) context_.progress.note("faster than the measured ceilings: measuring them again");
      grade_.score = score_stage(context_.deck, context_.problem, *grade_.timing, limits(true));
      return std::nullopt;
    });
  }

  const GradeContext& context_;
  Workbench& workbench_;
  Seed seed_;
  Grade grade_;
};

}  // namespace

cpu::CacheFlusher& Workbench::flusher() {
  if (!flusher_) flusher_ = std::make_unique<cpu::CacheFlusher>();
  return *flusher_;
}

cpu::MemoryProbe& Workbench::memory_probe() {
  if (!memory_probe_) memory_probe_ = std::make_unique<cpu::MemoryProbe>();
  return *memory_probe_;
}

#ifdef KBH_WITH_CUDA
const cuda::Ceilings& Workbench::ceilings(const cuda::DeviceInfo& device, const Progress& progress, bool again) {
  const auto cached = cuda_ceilings_.find(device.uuid);
  if (cached != cuda_ceilings_.end() && !again) return cached->second;
  return cuda_ceilings_[device.uuid] = cuda::ceilings(device, again, [&](std::string_view line) {
           if (progress.note) progress.note(std::string(line));
         });
}
#endif

const cpu::Ceilings& Workbench::ceilings(const Progress& progress, bool again) {
  if (!ceilings_ || again)
    ceilings_ = cpu::ceilings(again, [&](std::string_view line) {
      if (progress.note) progress.note(std::string(line));
    });
  return *ceilings_;
}

namespace {

/// Every call of a check allocates what the oracle expects, up to gigabytes, and frees it again: kept, it need not be
/// mapped and zeroed by the kernel page by page each time (1 GiB: 0.4 s).
void keep_freed_memory() {
  static const bool done = ::mallopt(M_MMAP_MAX, 0) == 1 && ::mallopt(M_TRIM_THRESHOLD, INT_MAX) == 1;
  static_cast<void>(done);
}

}  // namespace

Grade grade(const GradeContext& context, Submission submission, Workbench& workbench) {
  keep_freed_memory();
  return Pipeline(context, std::move(submission), workbench).run();
}

int exit_code(const Grade& grade) {
  if (grade.verdict == Verdict::pass || grade.verdict == Verdict::not_graded) return 0;
  return grade.verdict == Verdict::infra ? 4 : 1;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace kbh
