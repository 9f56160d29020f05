#include "command.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.hpp"

namespace kbh::test {
namespace {

[[noreturn]] void become(const std::vector<std::string>& argv, const CommandOptions& options, const fs::path& out,
                         const fs::path& err) {
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) ::_exit(127);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(::open(out.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), STDOUT_FILENO);
  ::dup2(::open(err.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  ::_exit(127);
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& argv, const CommandOptions& options) {
  const TempDir folder("kbh-command");
  const fs::path out = folder.path() / "out";
  const fs::path err = folder.path() / "err";
  const pid_t pid = ::fork();
  if (pid < 0) fail_errno("fork");
  if (pid == 0) become(argv, options, out, err);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(out), read_text(err)};
}

CommandResult kbh(std::vector<std::string> arguments, const CommandOptions& options) {
  arguments.insert(arguments.begin(), KBH_BINARY_DIR "/kbh");
  return run_command(arguments, options);
}

std::map<std::string, Json> records_of(const fs::path& store) {
  std::map<std::string, Json> records;
  for (const auto& entry : fs::directory_iterator(store))
    if (fs::exists(entry.path() / "grade.json"))
      records[entry.path().filename().string()] = Json::parse(read_text(entry.path() / "grade.json"));
  return records;
}

bool sandbox_offers(const std::string& level) {
  static const std::string best = [] {
    const Json doctor = Json::parse(kbh({"doctor", "--json"}).out);
    for (const Json& finding : doctor.at("findings"))
      if (finding.at("topic") == "sandbox") {
        const std::string text = finding.at("finding");
        return text.substr(0, text.find(':'));
      }
    return std::string("none");
  }();
  const auto rank = [](const std::string& name) { return name == "full" ? 2 : name == "reduced" ? 1 : 0; };
  return rank(level) <= rank(best);
}

}  // namespace kbh::test
