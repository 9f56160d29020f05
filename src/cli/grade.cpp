// kbh grade, check, bench: the same pipeline with more or fewer stages.
#include "cli/grade.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "base/files.hpp"
#include "cli/cli.hpp"
#include "cli/terminal.hpp"
#include "cli/watch.hpp"
#include "problem/registry.hpp"
#include "report/table.hpp"
#include "store/run_folder.hpp"
#ifdef KBH_WITH_CUDA
#include "device/cuda/lease.hpp"
#endif

namespace kbh::cli {

// A path below kernels/05_topk/ names its problem by itself.
const Problem& problem_of(const GradeArguments& arguments, const fs::path& submission) {
  if (!arguments.problem.empty()) return find_problem(arguments.problem);
  for (const fs::path& part : fs::absolute(submission))
    for (const Problem& problem : all_problems())
      if (part == problem.id) return problem;
  fail(ErrorKind::usage, "which problem does {} solve? Say --problem ID (`kbh problems` lists them)",
       submission.string());
}

#ifdef KBH_WITH_CUDA
namespace {

bool is_for(const Deck& deck, const std::string& gpu) {
  return std::find(deck.gpus.begin(), deck.gpus.end(), gpu) != deck.gpus.end();
}

/// The deck of a GPU of this machine; empty when there is none.
std::string deck_of_gpu(int device) {
  if (!cuda::driver_state().usable) return {};
  const std::string gpu = cuda::device_info(device).name;
  for (const std::string& name : deck_names())
    if (is_for(find_deck(name), gpu)) return name;
  return {};
}

}  // namespace
#endif

void require_runner(const Deck& deck, [[maybe_unused]] int device) {
  if (deck.device == "cpu" && deck.status.empty()) return;
  std::string why = deck.status.empty() ? "this build has no runner for device " + deck.device : deck.status;
#ifndef KBH_WITH_CUDA
  if (deck.device == "cuda" && deck.status.empty())
    why = "this kbh was built without CUDA; install the toolkit (12.8 or later) and build again, or say --dry-run";
#else
  if (deck.device == "cuda" && deck.status.empty()) {
    if (cuda::driver_state().usable) {
      const std::string gpu = cuda::device_info(device).name;
      if (is_for(deck, gpu)) return;
      why = fmt::format("device {} is a {}, the deck is for {}", device, gpu, fmt::join(deck.gpus, " or "));
    } else {
      why = cuda::driver_state().why + "; --dry-run builds and plans without one";
    }
  }
#endif
  fail(ErrorKind::machine, "deck {}: nothing can be graded on it here: {}", deck.name, why);
}

namespace {

/// Device code goes to the GPU that is there.
Deck deck_for(const GradeArguments& arguments, [[maybe_unused]] Lane lane) {
  if (!arguments.deck.empty()) return find_deck(arguments.deck);
#ifdef KBH_WITH_CUDA
  if (lane == Lane::sealed)
    if (const std::string found = deck_of_gpu(arguments.device); !found.empty()) return find_deck(found);
#endif
  return find_deck("cpu");
}

}  // namespace

sandbox::Level level_of(const GradeArguments& arguments) {
  if (arguments.no_sandbox) return sandbox::Level::none;
  const sandbox::Support& support = sandbox::support();
  if (!arguments.sandbox.empty()) {
    const auto wanted = sandbox::level_from(arguments.sandbox);
    if (!wanted || *wanted == sandbox::Level::none)
      fail(ErrorKind::usage, "--sandbox {}: expected full or reduced (or the option --no-sandbox)", arguments.sandbox);
    if (*wanted > support.level)
      fail(ErrorKind::machine, "--sandbox {}: this machine offers {} only: {}. {}", arguments.sandbox,
           name_of(support.level), support.why, support.missing);
    return *wanted;
  }
  if (support.level == sandbox::Level::none)
    fail(ErrorKind::machine,
         "no sandbox on this machine: {}. {} To run foreign code without one anyway, say --no-sandbox; the record will "
         "say so",
         support.why, support.missing);
  return support.level;
}

namespace {

Seed seed_from_hex(const std::string& hex) {
  const auto bad = [&] {
    fail(ErrorKind::usage, "--seed {}: expected 32 hexadecimal digits, as `seed.hex` of a grade.json", hex);
  };
  if (hex.size() != 32) bad();
  Seed seed;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    if (std::isxdigit(static_cast<unsigned char>(hex[i])) == 0 ||
        std::isxdigit(static_cast<unsigned char>(hex[i + 1])) == 0)
      bad();
    seed += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return seed;
}

void check_lane(const Submission& submission, const Deck& deck) {
  const std::string lane(name_of(submission.lane));
  if (std::find(deck.lanes.begin(), deck.lanes.end(), lane) != deck.lanes.end()) return;
  std::string lanes;
  for (const std::string& one : deck.lanes) lanes += (lanes.empty() ? "" : ", ") + one;
  fail(ErrorKind::usage,
       "{} is for the {} lane; deck {} takes: {} (submission.cpp with the C ABI of include/kbh/host.h)",
       submission.main().path.string(), lane, deck.name, lanes);
}

std::string name_for(const Problem& problem, const fs::path& submission) {
  fs::path absolute = fs::absolute(submission).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  return problem.id + "_" + absolute.filename().string();
}

void say(Terminal& terminal, const std::string& line) {
  terminal.clear();
  fmt::print(stderr, "kbh: {}\n", line);
}

/// The cases asked for; --quick asks for the nominal one. Error(usage) when the problem has no such case.
std::vector<std::string> cases_from(const GradeArguments& arguments, const Problem& problem) {
  for (const std::string& name : arguments.cases)
    if (!problem.find_case(name))
      fail(ErrorKind::usage, "--cases {}: {} has no such case (`kbh problems {}` lists them)", name, problem.id,
           problem.id);
  if (arguments.cases.empty() && arguments.quick) return {problem.nominal().name};
  return arguments.cases;
}

/// An answer within seconds, for whoever is writing a kernel.
DeckSampling quick(DeckSampling sampling) {
  sampling.min_samples = std::min(sampling.min_samples, 10);
  sampling.seconds_per_shape = std::min(sampling.seconds_per_shape, 0.3);
  sampling.check_seeds = 1;
  return sampling;
}

/// Grades one submission; prints its table unless --json collects the documents.
int grade_one(const GradeArguments& arguments, const fs::path& path, Workbench& workbench, Json* documents) {
  const Problem& problem = problem_of(arguments, path);
  GradeOptions options;
  options.mode = arguments.mode;
  options.level = level_of(arguments);
  options.dry_run = arguments.dry_run;
  if (!arguments.seed.empty()) options.seed = seed_from_hex(arguments.seed);
  std::optional<Lane> lane;
  if (!arguments.lane.empty()) {
    lane = lane_from(arguments.lane);
    if (!lane)
      fail(ErrorKind::usage, "--lane {}: expected host (sealed and python come with GPU decks)", arguments.lane);
  }
  Submission submission = read_submission(path, lane);
  Deck deck = deck_for(arguments, submission.lane);
  check_lane(submission, deck);
  if (!arguments.dry_run) require_runner(deck, arguments.device);
  options.device = arguments.device;
  if (arguments.shape >= 0) {
    const std::size_t shapes = deck.shapes_of(problem).size();
    if (static_cast<std::size_t>(arguments.shape) >= shapes)
      fail(ErrorKind::usage, "--shape {}: deck {} has shapes 0 to {} for {}", arguments.shape, deck.name, shapes - 1,
           problem.id);
    options.shape = static_cast<std::size_t>(arguments.shape);
  }
  options.cases = cases_from(arguments, problem);
  options.quick = arguments.quick;
  if (arguments.quick) deck.sampling = quick(deck.sampling);
#ifdef KBH_WITH_CUDA
  std::optional<cuda::Lease> lease;
  if (deck.device == "cuda" && !arguments.dry_run) lease.emplace(cuda::device_info(arguments.device).uuid);
#endif

  Terminal terminal(arguments.quiet);
  for (const std::string& id : clean_store(arguments.store))
    say(terminal, fmt::format("{}/{} was interrupted; it is marked so now", arguments.store, id));
  const RunFolder folder(arguments.store, name_for(problem, path));
  GradeContext context{problem,
                       deck,
                       options,
                       terminal.progress(),
                       [&](const std::string& name, const std::string& content) { folder.save(name, content); },
                       std::chrono::steady_clock::now() +
                           std::chrono::milliseconds(static_cast<std::int64_t>(deck.limits.grade_seconds * 1e3))};
  Grade result;
  try {
    result = grade(context, std::move(submission), workbench);
  } catch (const Error& error) {  // our side: the record says so, and the exit code too
    folder.finish({{"schema", "kbh.grade/1"},
                   {"id", folder.id()},
                   {"verdict", name_of(Verdict::infra)},
                   {"finding", {{"verdict", name_of(Verdict::infra)}, {"what", error.what()}}}});
    throw;
  }
  result.id = folder.id();
  const Json document = to_json(result, problem, deck);
  folder.finish(document);
  terminal.clear();
  if (documents) {
    documents->push_back(document);
  } else {
    fmt::print("{}", grade_text(result, problem, deck, (folder.path() / "grade.json").string(), Terminal::colour()));
  }
  return exit_code(result);
}

int grade_all(const GradeArguments& arguments) {
  clean_temporary_folders();
  Workbench workbench;
  Json documents = Json::array();
  int worst = 0;
  for (const std::string& path : arguments.submissions)
    worst = std::max(worst, grade_one(arguments, path, workbench, arguments.json ? &documents : nullptr));
  if (!arguments.json) return worst;
  const Json all = documents.size() == 1 ? documents[0] : Json{{"schema", "kbh.grades/1"}, {"grades", documents}};
  fmt::print("{}", to_text(all));
  return worst;
}

void add_common(CLI::App* verb, GradeArguments& a) {
  verb->add_option("submission", a.submissions, "folder or file; several share one process")->required();
  verb->add_option("--problem,-p", a.problem, "problem id, alias or number; taken from the path when it names one");
  verb->add_option("--deck,-d", a.deck, "deck name (default: for device code that of the GPU found, else cpu)");
  verb->add_option("--device", a.device, "number of the GPU, on CUDA decks")->capture_default_str();
  verb->add_option("--lane", a.lane, "override the lane that the file name stands for");
  verb->add_option("--store", a.store, "where records go (default: $KBH_STORE, else ./runs)");
  verb->add_option("--seed", a.seed, "replay the data of an earlier grade (32 hex digits)");
  verb->add_option("--sandbox", a.sandbox, "full or reduced (default: the best this machine offers)");
  verb->add_flag("--no-sandbox", a.no_sandbox, "run foreign code unprotected; the record says so");
  verb->add_option("--shape", a.shape, "only this shape (0, 1, ... in the order of the deck); not a grade then");
  verb->add_flag("--quick", a.quick, "nominal case, few samples: an answer within seconds, not a grade");
  verb->add_flag("--json", a.json, "print the kbh.grade/1 document on stdout, and nothing else");
  verb->add_flag("--quiet,-q", a.quiet, "no progress on stderr");
}

void add_cases(CLI::App* verb, GradeArguments& a) {
  verb->add_option("--cases", a.cases, "only these cases, separated by commas; not a grade then")->delimiter(',');
}

}  // namespace

void add_grade(Cli& cli) {
  static GradeArguments grade_arguments;
  static GradeArguments check_arguments;
  static GradeArguments bench_arguments;
  for (GradeArguments* a : {&grade_arguments, &check_arguments, &bench_arguments}) a->store = default_store();
  check_arguments.mode = Mode::check;
  bench_arguments.mode = Mode::bench;

  CLI::App* grade_verb = cli.verb("grade", "Build, check and time a submission; say what it is worth",
                                  "  kbh grade kernels/05_topk/host-cpu --problem 05_topk --deck cpu\n"
                                  "  kbh grade my.cpp -p topk --json > grade.json\n"
                                  "  kbh grade a b c -p 05 --deck cpu-tiny      # one process, three grades\n"
                                  "  kbh grade my.cu -p 05 --quick --shape 0    # while writing a kernel: not a grade\n"
                                  "  kbh grade kernel.cu -p 05 --deck h200 --dry-run   # no GPU needed");
  add_common(grade_verb, grade_arguments);
  add_cases(grade_verb, grade_arguments);
  grade_verb->add_flag("--dry-run", grade_arguments.dry_run,
                       "build, plan and inspect only; needs nothing of the deck's device");
  cli.on(grade_verb, [] { return grade_all(grade_arguments); });

  CLI::App* check_verb =
      cli.verb("check", "Correctness only: every shape, case and neighbour, no timing",
               "  kbh check my -p 05_topk\n  kbh check my -p 05_topk --seed 0123456789abcdef0123456789abcdef");
  add_common(check_verb, check_arguments);
  add_cases(check_verb, check_arguments);
  cli.on(check_verb, [] { return grade_all(check_arguments); });

  CLI::App* bench_verb =
      cli.verb("bench", "Timing only; every timed output is still compared. Not a grade",
               "  kbh bench my -p 05_topk --shape 0\n  kbh bench --watch my/submission.cpp -p 05_topk");
  add_common(bench_verb, bench_arguments);
  bench_verb->get_option("submission")->required(false);
  bench_verb->add_option("--watch", bench_arguments.watch, "compile and time one shape on every save of this file");
  bench_verb->add_option("--watch-runs", bench_arguments.watch_runs, "with --watch: stop after this many runs")
      ->group("");
  cli.on(bench_verb, [] {
    if (!bench_arguments.watch.empty()) return watch(bench_arguments);
    if (bench_arguments.submissions.empty()) fail(ErrorKind::usage, "bench: name a submission, or --watch FILE");
    return grade_all(bench_arguments);
  });
}

}  // namespace kbh::cli
