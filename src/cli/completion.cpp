// kbh completion: shell completion, made from the verbs and options themselves so that it cannot go stale.
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "cli/cli.hpp"
#include "deck/deck.hpp"
#include "problem/registry.hpp"

namespace kbh::cli {
namespace {

struct Verb {
  std::string name;
  std::string about;
  std::vector<std::string> options;  // "--json", ...
};

std::vector<Verb> verbs_of(const CLI::App& app) {
  std::vector<Verb> verbs;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    Verb verb{sub->get_name(), sub->get_description(), {}};
    for (const CLI::Option* option : sub->get_options())
      for (const std::string& name : option->get_lnames())
        if (!option->get_group().empty()) verb.options.push_back("--" + name);
    verbs.push_back(std::move(verb));
  }
  return verbs;
}

std::string problem_ids() {
  std::string ids;
  for (const Problem& problem : all_problems()) ids += (ids.empty() ? "" : " ") + problem.id;
  return ids;
}

std::string names_of(const std::vector<Verb>& verbs) {
  std::string names;
  for (const Verb& verb : verbs) names += (names.empty() ? "" : " ") + verb.name;
  return names;
}

std::string bash(const std::vector<Verb>& verbs) {
  std::string cases;
  for (const Verb& verb : verbs)
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb.name, fmt::join(verb.options, " "));
  return fmt::format(R"sh(# kbh completion for bash: eval "$(kbh completion bash)"
_kbh() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=""
  case $before in
    --problem|-p|problems|lint-problem) COMPREPLY=($(compgen -W "{0}" -- "$word")); return ;;
    --deck|-d) COMPREPLY=($(compgen -W "{1}" -- "$word")); return ;;
    --sandbox) COMPREPLY=($(compgen -W "full reduced" -- "$word")); return ;;
    --lane) COMPREPLY=($(compgen -W "host" -- "$word")); return ;;
    completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$word")); return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "{2} --help --version" -- "$word")); return; fi
  case ${{COMP_WORDS[1]}} in
{3}  esac
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$words" -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _kbh kbh
)sh",
                     problem_ids(), fmt::join(deck_names(), " "), names_of(verbs), cases);
}

std::string fish(const std::vector<Verb>& verbs) {
  std::string text = "# kbh completion for fish: kbh completion fish | source\n";
  for (const Verb& verb : verbs) {
    std::string about = verb.about;
    for (char& c : about)
      if (c == '\'') c = ' ';
    text += fmt::format("complete -c kbh -n __fish_use_subcommand -a {} -d '{}'\n", verb.name, about);
    for (const std::string& option : verb.options)
      text += fmt::format("complete -c kbh -n '__fish_seen_subcommand_from {}' -l {}\n", verb.name, option.substr(2));
  }
  text += fmt::format("complete -c kbh -l problem -x -a '{}'\n", problem_ids());
  text += fmt::format("complete -c kbh -l deck -x -a '{}'\n", fmt::join(deck_names(), " "));
  return text;
}

int print(const CLI::App& app, const std::string& shell) {
  const std::vector<Verb> verbs = verbs_of(app);
  if (shell == "bash") return fmt::print("{}", bash(verbs)), 0;
  if (shell == "zsh") return fmt::print("autoload -U +X bashcompinit && bashcompinit\n{}", bash(verbs)), 0;
  if (shell == "fish") return fmt::print("{}", fish(verbs)), 0;
  fail(ErrorKind::usage, "completion {}: expected bash, zsh or fish", shell);
}

}  // namespace

void add_completion(Cli& cli) {
  static std::string shell;
  CLI::App* verb = cli.verb("completion", "Print shell completion",
                            "  eval \"$(kbh completion bash)\"\n  kbh completion zsh > ~/.kbh-completion.zsh\n"
                            "  kbh completion fish | source");
  verb->add_option("shell", shell, "bash, zsh or fish")->required();
  cli.on(verb, [&cli] { return print(cli.app, shell); });
}

}  // namespace kbh::cli
