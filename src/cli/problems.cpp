// kbh problems, kbh lint-problem.
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "cli/bounds.hpp"
#include "cli/cli.hpp"
#include "deck/prompt.hpp"
#include "deck/release.hpp"
#include "problem/lint.hpp"
#include "problem/registry.hpp"
#include "report/table.hpp"

namespace kbh::cli {
namespace {

struct ProblemsArguments {
  std::string id;
  std::string deck = "cpu";
  bool deck_given = false;
  bool json = false;
  bool prompt = false;
  std::string reference;  // "python", "cpp", or empty
};

struct LintArguments {
  std::string id;
  bool all = false;
  std::string deck = "cpu-tiny";
};

Json to_json(const Problem& problem) {
  Json cases = Json::array();
  for (const Case& c : problem.cases) cases.push_back({{"name", c.name}, {"about", c.about}});
  return {{"id", problem.id},
          {"title", problem.title},
          {"aliases", problem.aliases},
          {"version", problem.version},
          {"summary", problem.summary},
          {"domain", problem.domain},
          {"tolerance", problem.tolerance},
          {"dims", problem.dims},
          {"flops_formula", problem.flops_formula},
          {"bytes_formula", problem.bytes_formula},
          {"forbidden", problem.forbidden},
          {"cases", cases}};
}

void print_list() {
  Table table{{"id", "title", "aliases"}, {Align::left, Align::left, Align::left}, {}};
  for (const Problem& problem : all_problems())
    table.rows.push_back({problem.id, problem.title, fmt::format("{}", fmt::join(problem.aliases, ", "))});
  fmt::print("{}\n`kbh problems ID` prints one: tensors, domain, rule, cases, shapes\n", table.text());
}

void print_tensors(const Problem& problem, const Shape& shape) {
  Table table{{"tensor", "role", "dtype", "shape"}, {Align::left, Align::left, Align::left, Align::left}, {}};
  for (const TensorSpec& t : problem.tensors(shape))
    table.rows.push_back({t.name, std::string(name_of(t.role)), std::string(name_of(t.dtype)),
                          fmt::format("({})", fmt::join(t.dims, ", "))});
  fmt::print("tensors at {}:\n{}\n", shape.text(), table.text());
}

void print_shapes(const Problem& problem, const Deck& deck) {
  Table table{{"#", "shape", "regime", "bytes at least", "flops"},
              {Align::right, Align::left, Align::left, Align::right, Align::right},
              {}};
  const auto& shapes = deck.shapes_of(problem);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Work work = problem.work(shapes[i].shape);
    table.rows.push_back({fmt::format("{}", i), shapes[i].shape.text(), std::string(name_of(shapes[i].regime)),
                          fmt::format("{:.0f}", work.min_bytes), fmt::format("{:.3g}", work.flops)});
  }
  fmt::print("shapes on deck {} (and their neighbours inside the domain are checked too):\n{}\n", deck.name,
             table.text());
}

void print_one(const Problem& problem, const Deck& deck) {
  fmt::print("{}  {}  (version {}; also: {})\n\n{}\n\ndomain: {}\n\nrule: {}\n\n", problem.id, problem.title,
             problem.version, fmt::join(problem.aliases, ", "), problem.summary, problem.domain, problem.tolerance);
  print_tensors(problem, deck.shapes_of(problem).front().shape);
  print_shapes(problem, deck);
  fmt::print("cases:\n");
  for (const Case& c : problem.cases) fmt::print("  {:<22} {}\n", c.name, c.about);
}

void print_reference(const Problem& problem, const std::string& language) {
  fmt::print("{}", language == "python" ? problem.reference_python : problem.reference_cpp);
}

int problems(const ProblemsArguments& arguments) {
  if (arguments.id.empty() && (arguments.prompt || !arguments.reference.empty()))
    fail(ErrorKind::usage, "problems: {} needs a problem's id", arguments.prompt ? "--prompt" : "--reference");
  if (!arguments.id.empty()) {
    const Problem& problem = find_problem(arguments.id);
    if (arguments.prompt)
      fmt::print("{}", render_prompt(problem, find_deck(arguments.deck)));
    else if (!arguments.reference.empty())
      print_reference(problem, arguments.reference);
    else if (arguments.json)
      fmt::print("{}", to_text(to_json(problem)));
    else
      print_one(problem, find_deck(arguments.deck));
    return 0;
  }
  if (arguments.deck_given) return print_bounds(find_deck(arguments.deck), arguments.json);
  if (!arguments.json) return print_list(), 0;
  Json all = Json::array();
  for (const Problem& problem : all_problems()) all.push_back(to_json(problem));
  fmt::print("{}", to_text({{"schema", "kbh.problems/1"}, {"problems", all}}));
  return 0;
}

/// Released versions of decks and problems: how many of them changed.
int lint_releases() {
  const std::vector<std::string> faults = release_faults(resource_root());
  for (const std::string& fault : faults) fmt::print("fault: {}\n", fault);
  fmt::print("released versions (decks/released.lock): {}\n",
             faults.empty() ? "unchanged" : fmt::format("{} faults", faults.size()));
  return static_cast<int>(faults.size());
}

int lint(const LintArguments& arguments) {
  if (arguments.all == !arguments.id.empty()) fail(ErrorKind::usage, "lint-problem: name one problem, or say --all");
  const Deck deck = find_deck(arguments.deck);
  int faulty = 0;
  for (const Problem& problem : all_problems()) {
    if (!arguments.all && problem.id != find_problem(arguments.id).id) continue;
    std::vector<Shape> shapes;
    for (const DeckShape& s : deck.shapes_of(problem)) shapes.push_back(s.shape);
    const LintReport report = lint_problem(problem, shapes, random_bytes(16));
    fmt::print("{} on deck {}\n{}\n", problem.id, deck.name, lint_text(report));
    faulty += report.faults.empty() ? 0 : 1;
  }
  if (arguments.all) faulty += lint_releases();
  return faulty == 0 ? 0 : 1;
}

}  // namespace

void add_problems(Cli& cli) {
  static ProblemsArguments problems_arguments;
  CLI::App* problems_verb =
      cli.verb("problems", "List the problems; print one (tensors, domain, rule, cases, shapes) or a deck's bounds",
               "  kbh problems\n  kbh problems 05 --deck cpu\n  kbh problems --deck h200   # what physics allows\n"
               "  kbh problems --json\n  kbh problems 05 --deck h200 --prompt\n"
               "  kbh problems 05 --reference python");
  problems_verb->add_option("id", problems_arguments.id, "id, alias or number");
  const CLI::Option* deck = problems_verb
                                ->add_option("--deck,-d", problems_arguments.deck,
                                             "deck whose shapes are printed; without an id, their bounds")
                                ->capture_default_str();
  CLI::Option* json = problems_verb->add_flag("--json", problems_arguments.json, "machine-readable");
  CLI::Option* prompt =
      problems_verb->add_flag("--prompt", problems_arguments.prompt, "what an agent is told, for the deck")
          ->excludes(json);
  problems_verb->add_option("--reference", problems_arguments.reference, "print the reference to read: python or cpp")
      ->check(CLI::IsMember({"python", "cpp"}))
      ->excludes(json)
      ->excludes(prompt);
  cli.on(problems_verb, [deck] {
    problems_arguments.deck_given = deck->count() > 0;
    return problems(problems_arguments);
  });

  static LintArguments lint_arguments;
  CLI::App* lint_verb = cli.verb("lint-problem", "Prove that a problem's cases bite: every mutant against every case",
                                 "  kbh lint-problem 05_topk\n  kbh lint-problem --all --deck cpu-tiny");
  lint_verb->add_option("id", lint_arguments.id, "id, alias or number");
  lint_verb->add_flag("--all", lint_arguments.all, "every problem");
  lint_verb->add_option("--deck,-d", lint_arguments.deck, "deck whose shapes are used")->capture_default_str();
  cli.on(lint_verb, [] { return lint(lint_arguments); });
}

}  // namespace kbh::cli
