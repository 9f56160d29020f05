#include "cli/cli.hpp"

#include <csignal>
#include <cstdlib>

#include "base/error.hpp"

namespace kbh::cli {

Cli::Cli() : app("kbh: is a kernel right, how fast is it, how far from the hardware's limit, and honestly so?", "kbh") {
  app.set_version_flag("--version", KBH_VERSION);
  app.require_subcommand(0, 1);
  app.footer(
      "Exit codes: 0 passed, 1 graded but not passed, 2 wrong usage, 3 this machine cannot, 4 our fault.\n"
      "Each verb has examples: kbh VERB --help. First steps: kbh doctor; kbh problems; kbh new --help");
}

CLI::App* Cli::verb(const std::string& name, const std::string& about, const std::string& examples) {
  CLI::App* sub = app.add_subcommand(name, about);
  sub->footer("Examples:\n" + examples);
  return sub;
}

void Cli::on(CLI::App* sub, std::function<int()> run) {
  sub->callback([this, run = std::move(run)] { chosen = run; });
}

std::string default_store() {
  const char* given = std::getenv("KBH_STORE");
  return given && *given ? given : "runs";
}

int run(int argc, char** argv) {
  // Writing to a closed pipe or beyond a size limit is an error to report, not a reason to die without a word.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    Cli cli;
    add_grade(cli);
    add_problems(cli);
    add_new(cli);
    add_doctor(cli);
    add_ceilings(cli);
    add_completion(cli);
    try {
      cli.app.parse(argc, argv);
    } catch (const CLI::Success& success) {  // --help, --version
      return cli.app.exit(success);
    } catch (const CLI::ParseError& error) {
      fmt::print(stderr, "kbh: {}\nkbh: `kbh --help` lists the verbs, `kbh VERB --help` the options\n", error.what());
      return 2;
    }
    if (!cli.chosen) {
      fmt::print("{}", cli.app.help());
      return 2;
    }
    return cli.chosen();
  } catch (const Error& error) {
    fmt::print(stderr, "kbh: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "kbh: internal error: {}\n", error.what());
    return 4;
  }
}

}  // namespace kbh::cli
