// The record of a grade as JSON. Field by field, so that a reader of docs/formats.md finds every line here.
#include "base/hash.hpp"
#include "grade/pipeline.hpp"

namespace kbh {
namespace {

Json to_json(const Shape& shape) {
  Json json = Json::object();
  for (const auto& [name, value] : shape.dims) json[name] = value;
  return json;
}

Json to_json(const Finding& finding) {
  return {{"verdict", name_of(finding.verdict)},
          {"stage", name_of(finding.stage)},
          {"what", finding.what},
          {"details", finding.details},
          {"next", finding.next}};
}

Json to_json(const Submission& submission) {
  Json files = Json::array();
  for (const SourceFile& file : submission.files)
    files.push_back(
        {{"path", file.path.string()}, {"bytes", file.content.size()}, {"sha256", sha256_hex(file.content)}});
  return {{"origin", submission.origin.string()},
          {"lane", name_of(submission.lane)},
          {"sha256", submission.sha256},
          {"flags", submission.flags},
          {"files", files}};
}

Json to_json(const BuildResult& build) {
  return {{"ok", build.ok},           {"cached", build.cached},   {"compiler", build.compiler},
          {"command", build.command}, {"seconds", build.seconds}, {"artifact_sha256", build.artifact_sha256}};
}

/// The whole of it is plan.json of the record.
Json to_json(const PlanReport& report) {
  Json kernels = Json::array();
  for (const CubinKernel& k : report.cubin.kernels)
    kernels.push_back({{"name", k.name},
                       {"parameters", k.parameters.size()},
                       {"static_shared", k.static_shared},
                       {"registers", k.registers},
                       {"local", k.local},
                       {"instructions", k.text.size() / 16}});
  Json shapes = Json::array();
  for (const PlannedShape& s : report.shapes) {
    if (!s.listed) continue;
    Json launches = Json::array();
    for (const sealed::PlanStep& step : s.plan.steps)
      if (!step.zero)
        launches.push_back({{"kernel", step.launch.kernel}, {"grid", step.launch.grid}, {"block", step.launch.block}});
    shapes.push_back({{"shape", to_json(s.shape)}, {"launches", launches}});
  }
  return {{"kernels", kernels}, {"writable_globals", report.cubin.writable_bytes}, {"shapes", shapes}};
}

Json to_json(const Evidence& evidence) {
  Json labels = Json::array();
  for (const Label& label : evidence.labels) labels.push_back({{"kind", label.kind}, {"where", label.where}});
  return {{"libraries", evidence.census.libraries},
          {"imported", evidence.census.imported},
          {"exported", evidence.census.exported},
          {"labels", labels}};
}

Json to_json(const CheckReport& check) {
  Json calls = Json::array();
  std::int64_t passed = 0;
  for (const CheckedCall& call : check.calls) {
    passed += call.comparison.pass ? 1 : 0;
    Json one{{"case", call.case_name}, {"shape", to_json(call.shape)}, {"listed", call.listed}, {"trial", call.trial}};
    if (call.further) one["further_call"] = true;
    one["pass"] = call.comparison.pass;
    if (call.upstream) one["upstream_pass"] = *call.upstream;
    one["worst"] = call.comparison.worst;
    if (!call.comparison.note.empty()) one["note"] = call.comparison.note;
    if (!call.comparison.pass) one["bad"] = call.comparison.bad;
    if (const auto& m = call.comparison.mismatch)
      one["mismatch"] = {
          {"output", m->output}, {"index", m->index}, {"expected", m->expected}, {"got", m->got}, {"rule", m->rule}};
    calls.push_back(std::move(one));
  }
  Json upstream = "unavailable";
  if (check.upstream_pass) upstream = *check.upstream_pass;
  return {{"passed", passed}, {"total", check.calls.size()}, {"upstream_pass", upstream}, {"calls", calls}};
}

Json device_timing(const ShapeTiming& timing) {
  Json samples = Json::array();
  for (const DeviceSample& s : timing.device_samples)
    samples.push_back({{"event_us", s.event_us}, {"host_us", s.host_us}, {"clock_mhz", s.clock_mhz}, {"slot", s.slot}});
  return {{"shape", to_json(timing.shape)},
          {"regime", name_of(timing.regime)},
          {"median_us", timing.median_us},
          {"interval_us", {timing.interval_us.low, timing.interval_us.high}},
          {"interval_kind", "median, 95 %, within this run"},
          {"host_us", timing.grader_us},
          {"batch_us", timing.batch_us},
          {"clock_mhz", timing.clock_mhz},
          {"clocks_agree", timing.clocks_agree},
          {"disagreeing_samples", timing.disagreeing},
          {"samples", samples}};
}

Json to_json(const ShapeTiming& timing) {
  Json samples = Json::array();
  for (const Sample& s : timing.samples)
    samples.push_back({{"worker_us", s.worker_us},
                       {"grader_us", s.grader_us},
                       {"waited_us", s.waited_us},
                       {"probe_ns", s.probe_ns},
                       {"memory_us", s.memory_us},
                       {"slot", s.slot}});
  if (!timing.device_samples.empty()) return device_timing(timing);
  return {{"shape", to_json(timing.shape)},
          {"regime", name_of(timing.regime)},
          {"median_us", timing.median_us},
          {"interval_us", {timing.interval_us.low, timing.interval_us.high}},
          {"interval_kind", "median, 95 %, within this run"},
          {"grader_us", timing.grader_us},
          {"batch_us", timing.batch_us},
          {"clocks_agree", timing.clocks_agree},
          {"disagreeing_samples", timing.disagreeing},
          {"speed_spread", timing.speed_spread},
          {"memory_us", timing.memory_us},
          {"memory_bytes", timing.memory_bytes},
          {"attempts", timing.attempts},
          {"samples", samples}};
}

Json to_json(const TimingReport& timing) {
  Json shapes = Json::array();
  for (const ShapeTiming& shape : timing.shapes) shapes.push_back(to_json(shape));
  Json json{{"empty_call_us", timing.empty_call_us}};
  if (timing.nothing_us > 0) json["nothing_us"] = timing.nothing_us;
  json["shapes"] = shapes;
  return json;
}

Json to_json(const Score& score) {
  Json shapes = Json::array();
  for (const ShapeScore& s : score.shapes)
    shapes.push_back({{"shape", to_json(s.shape)},
                      {"regime", name_of(s.regime)},
                      {"time_us", s.time_us},
                      {"bounded_by_grader_clock", s.bounded},
                      {"interval_us", {s.interval_us.low, s.interval_us.high}},
                      {"machine_interval_us", {s.machine_interval_us.low, s.machine_interval_us.high}},
                      {"memory_share", s.memory_share},
                      {"gbs", s.gbs},
                      {"gflops", s.gflops},
                      {"roofline_us", s.roofline_us},
                      {"upstream_fraction", s.upstream_fraction},
                      {"roofline_fraction", s.roofline_fraction},
                      {"attainable_fraction", s.attainable_fraction}});
  Json json{{"shapes", shapes},
            {"peak_fraction", score.peak_fraction},
            {"roofline_fraction", score.roofline_fraction},
            {"attainable_fraction", score.attainable_fraction},
            {"sol_score", "unavailable"}};
  if (!score.relative_to.empty()) json["relative_to"] = score.relative_to;
  if (score.ceilings_stale) json["ceilings_stale"] = true;
  return json;
}

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::grade:
      return "grade";
    case Mode::check:
      return "check";
    case Mode::bench:
      return "bench";
  }
  return "?";
}

/// What was left out of a grade.
Json partial_of(const GradeOptions& options) {
  Json json{{"mode", name_of(options.mode)}, {"quick", options.quick}};
  if (options.shape) json["shape"] = *options.shape;
  if (!options.cases.empty()) json["cases"] = options.cases;
  return json;
}

}  // namespace

Json to_json(const Grade& grade, const Problem& problem, const Deck& deck) {
  Json json{{"schema", "kbh.grade/1"},
            {"id", grade.id},
            {"mode", name_of(grade.options.mode)},
            {"verdict", kbh::name_of(grade.verdict)},
            {"started_at", grade.started_at},
            {"kbh_version", KBH_VERSION},
            {"problem", {{"id", problem.id}, {"version", problem.version}}},
            {"deck", {{"name", deck.name}, {"version", deck.version}, {"sha256", deck.sha256}}},
            {"device", grade.device},
            {"sandbox", sandbox::name_of(grade.options.level)},
            {"submission", to_json(grade.submission)},
            {"build", to_json(grade.build)}};
  if (grade.options.partial()) json["partial"] = partial_of(grade.options);
  if (grade.finding) json["finding"] = to_json(*grade.finding);
  if (!grade.seed_hex.empty()) json["seed"] = {{"hex", grade.seed_hex}, {"given", !grade.options.seed.empty()}};
  if (grade.plan) json["plan"] = to_json(*grade.plan);
  if (grade.evidence) json["evidence"] = to_json(*grade.evidence);
  if (grade.check) json["check"] = to_json(*grade.check);
  if (grade.timing) json["timing"] = to_json(*grade.timing);
  if (grade.score) json["score"] = to_json(*grade.score);
  if (!grade.ceilings.is_null()) json["ceilings"] = grade.ceilings;
  json["worker_log_truncated"] = grade.worker_log_truncated;
  json["stage_seconds"] = grade.stage_seconds;
  return json;
}

}  // namespace kbh
