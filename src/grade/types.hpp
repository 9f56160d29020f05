// What the stages hand to each other. Each stage is a function of the former structs; each can be read alone in the
// record.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/statistics.hpp"
#include "deck/deck.hpp"
#include "inspect/cubin.hpp"
#include "inspect/tripwires.hpp"
#include "lane/compile.hpp"
#include "lane/sealed/plan.hpp"
#include "lane/submission.hpp"
#include "problem/problem.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh {

enum class Verdict { pass, incorrect, build_failed, rejected, crashed, timed_out, suspect, infra, not_graded };
std::string_view name_of(Verdict verdict);

enum class Stage { admit, build, plan, inspect, check, time, audit, score, record };
std::string_view name_of(Stage stage);

/// Why a grade ended where it did.
struct Finding {
  Verdict verdict = Verdict::infra;
  Stage stage = Stage::admit;
  std::string what;                  // one sentence
  std::vector<std::string> details;  // evidence: worst element, compiler's words, limit ...
  std::string next;                  // what to do
};

/// A sealed submission's launches for one shape.
struct PlannedShape {
  Shape shape;
  bool listed = true;  // false: a neighbour of a listed shape
  sealed::Plan plan;
};

struct PlanReport {
  std::string cubin_bytes;  // `cubin` points into it
  Cubin cubin;
  std::vector<PlannedShape> shapes;
};

struct Evidence {
  ElfCensus census;
  std::vector<Label> labels;
};

/// One call of the check stage, compared with the oracle.
struct CheckedCall {
  std::string case_name;
  Shape shape;
  bool listed = true;  // false: a neighbour of a listed shape
  int trial = 0;
  bool further = false;  // not the first call of its draw: inputs changed in place, or two states in turn
  Comparison comparison;
  std::optional<bool> upstream;  // what upstream's checker says, on a case that it has too
};

struct CheckReport {
  std::vector<CheckedCall> calls;
  std::optional<bool> upstream_pass;  // its tolerance on its cases; unknown when not all of them were run
  double seconds = 0;
};

/// One timed call.
struct Sample {
  double worker_us = 0;  // the worker's clock around the call: a claim
  double grader_us = 0;  // ours, from SIGCONT to seeing "done", less an empty call
  double waited_us = 0;  // of grader_us, when threads were ready but had no processor
  double probe_ns = 0;   // fixed work on this thread just before: clock drift and stolen time show here
  double memory_us = 0;  // MemoryProbe's read just before: how fast memory was
  int slot = 0;
};

/// One timed call of a sealed submission. No host code of its own runs, so both clocks are ours.
struct DeviceSample {
  double event_us = 0;   // between two events of the device
  double host_us = 0;    // from opening the gate to seeing the end, on the host
  double clock_mhz = 0;  // of a multiprocessor, mean since before the flush
  int slot = 0;
};

struct ShapeTiming {
  Shape shape;
  Regime regime = Regime::memory;
  std::vector<Sample> samples;               // host lane
  std::vector<DeviceSample> device_samples;  // sealed lane
  double clock_mhz = 0;                      // median of theirs
  double median_us = 0;                      // of worker_us; of event_us
  Interval interval_us;                      // of the median, within this run
  double grader_us = 0;     // 10 % quantile of the samples' grader_us: what the call cost where nothing disturbed it
  double batch_us = 0;      // per call, slope over batch sizes on the grader's clock
  double speed_spread = 0;  // (p90 - p10) / median of probe_ns
  double memory_us = 0;     // faster quartile of the samples' memory_us, as the ceilings are measured
  std::int64_t memory_bytes = 0;  // what each of those read
  bool clocks_agree = true;
  int disagreeing = 0;  // samples whose claim our clock contradicts
  int attempts = 1;
};

struct TimingReport {
  std::vector<ShapeTiming> shapes;
  double empty_call_us =
      0;                  // host lane: from SIGCONT to "done"; sealed lane: an empty kernel, as the samples are taken
  double nothing_us = 0;  // sealed lane: two events with nothing between them
  double seconds = 0;
};

struct ShapeScore {
  Shape shape;
  Regime regime = Regime::memory;
  double time_us = 0;    // what is scored: max(cold median, least cost by our own clock)
  bool bounded = false;  // the latter was larger
  Interval interval_us;  // of the median, within this run
  /// The same, widened by how the machine itself strayed: from its memory at its ceiling and its clock at its best to
  /// the slower quartile of this run. Two grades of one submission on one machine are to overlap.
  Interval machine_interval_us;
  double memory_share = 1;  // of its ceiling that memory reached between the samples, without the submission
  double gbs = 0;           // min_bytes / time
  double gflops = 0;
  double roofline_us = 0;
  double upstream_fraction = 0;
  double roofline_fraction = 0;
  double attainable_fraction = 0;
};

struct Score {
  std::vector<ShapeScore> shapes;
  double peak_fraction = 0;  // geometric means
  double roofline_fraction = 0;
  double attainable_fraction = 0;
  std::string relative_to;  // "this machine" on decks with measured peaks
  bool ceilings_stale = false;
};

enum class Mode { grade, check, bench };

struct GradeOptions {
  Mode mode = Mode::grade;
  sandbox::Level level = sandbox::Level::full;
  bool dry_run = false;  // build, plan and inspect only: what a machine without the deck's device can do
  std::optional<Lane> lane;
  int device = 0;                    // number of the GPU
  Seed seed;                         // empty: drawn after the build
  std::optional<std::size_t> shape;  // only this one (not a grade)
  std::vector<std::string> cases;    // only these, and no neighbours; empty: all (likewise)
  bool quick = false;                // few samples after a short warm-up (likewise)

  /// Whether something of a grade is left out.
  [[nodiscard]] bool partial() const { return mode != Mode::grade || shape || !cases.empty() || quick; }
};

struct Grade {
  std::string id;
  std::string started_at;
  Verdict verdict = Verdict::infra;
  std::optional<Finding> finding;
  GradeOptions options;
  Submission submission;
  std::string seed_hex;
  BuildResult build;
  std::optional<PlanReport> plan;  // sealed lane
  std::optional<Evidence> evidence;
  std::optional<CheckReport> check;
  std::optional<TimingReport> timing;
  std::optional<Score> score;
  Json device;    // what graded
  Json ceilings;  // its measured ceilings; null where none were needed
  std::string worker_log;
  bool worker_log_truncated = false;
  std::map<std::string, double> stage_seconds;
};

/// How a grade tells what it is doing. All optional.
struct Progress {
  std::function<void(Stage)> stage;
  std::function<void(const std::string& text, int done, int total)> step;
  std::function<void(const std::string& line)> note;
};

/// Everything a stage may use beside the former stages' structs.
struct GradeContext {
  const Problem& problem;
  const Deck& deck;
  GradeOptions options;
  Progress progress;
  /// Writes one part of the record (file name, content); absent when nothing is recorded.
  std::function<void(const std::string& name, const std::string& content)> save;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

}  // namespace kbh
