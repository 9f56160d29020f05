// kbh new: a starter that compiles, passes, and says where to begin.
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "cli/cli.hpp"
#include "deck/deck.hpp"
#include "lane/submission.hpp"
#include "problem/registry.hpp"

namespace kbh::cli {
namespace {

struct NewArguments {
  std::string folder;
  std::string problem;
  std::string lane = "host";
  std::string deck = "cpu";
};

std::string readme_of(const Problem& problem, const NewArguments& a, const Deck& deck) {
  std::string shapes;
  for (const DeckShape& s : deck.shapes_of(problem)) shapes += "    " + s.shape.text() + "\n";
  return fmt::format(
      "# {} for kbh, {} lane\n\n{}\n\nDomain: {}\n\nRule: {}\n\nTimed shapes on deck {}:\n\n{}\n"
      "Begin in `submission.cpp`: it is right and slow. Then\n\n"
      "    kbh check {} --problem {} --deck {}               # right? every case, no timing\n"
      "    kbh bench --watch {}/submission.cpp --problem {}  # one shape, on every save\n"
      "    kbh grade {} --problem {} --deck {}               # the grade\n\n"
      "The contract is `include/kbh/host.h`; `kbh problems {}` prints tensors and cases.\n",
      problem.title, a.lane, problem.summary, problem.domain, problem.tolerance, deck.name, shapes, a.folder,
      problem.id, deck.name, a.folder, problem.id, a.folder, problem.id, deck.name, problem.id);
}

int make(const NewArguments& a) {
  const Problem& problem = find_problem(a.problem);
  if (a.lane != "host") fail(ErrorKind::usage, "--lane {}: starters exist for the host lane", a.lane);
  const Deck deck = find_deck(a.deck);
  const fs::path folder = a.folder;
  std::error_code error;
  if (fs::exists(folder) && (!fs::is_directory(folder) || !fs::is_empty(folder)))
    fail(ErrorKind::usage, "{} exists already and is not an empty folder: choose another name", a.folder);
  const fs::path starter = resource_root() / "kernels" / problem.id / "host-cpu-baseline" / "submission.cpp";
  const std::string source = read_text(starter);
  fs::create_directories(folder, error);
  if (error) fail(ErrorKind::usage, "cannot create {}: {}", a.folder, error.message());
  write_atomic(folder / "submission.cpp", source);
  write_atomic(folder / "README.md", readme_of(problem, a, deck));
  fmt::print("{}/submission.cpp passes as it is; begin there.\nnext: kbh grade {} --problem {} --deck {}\n", a.folder,
             a.folder, problem.id, deck.name);
  return 0;
}

}  // namespace

void add_new(Cli& cli) {
  static NewArguments arguments;
  CLI::App* verb = cli.verb("new", "Write a starter that compiles, passes, and says where to begin",
                            "  kbh new my --problem 05_topk --lane host");
  verb->add_option("folder", arguments.folder, "folder to make")->required();
  verb->add_option("--problem,-p", arguments.problem, "problem id, alias or number")->required();
  verb->add_option("--lane", arguments.lane, "host")->capture_default_str();
  verb->add_option("--deck,-d", arguments.deck, "deck named in its README")->capture_default_str();
  cli.on(verb, [] { return make(arguments); });
}

}  // namespace kbh::cli
