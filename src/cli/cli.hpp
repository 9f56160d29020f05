// The command line: one file per verb, each adding itself to the app. A verb returns its exit code.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace kbh::cli {

/// What every verb needs to register.
struct Cli {
  CLI::App app;
  std::function<int()> chosen;  // set by the verb that was named on the command line

  Cli();
  /// Adds a verb; `examples` is shown below its --help.
  CLI::App* verb(const std::string& name, const std::string& about, const std::string& examples);
  void on(CLI::App* sub, std::function<int()> run);
};

void add_grade(Cli& cli);     // grade, check, bench
void add_problems(Cli& cli);  // problems, lint-problem
void add_new(Cli& cli);
void add_doctor(Cli& cli);
void add_ceilings(Cli& cli);
void add_completion(Cli& cli);

/// Parses, runs, prints what went wrong. The process's exit code (architecture section 9).
int run(int argc, char** argv);

/// --store, else $KBH_STORE, else ./runs.
std::string default_store();

}  // namespace kbh::cli
