// Command lines with their exit codes and words: tests/cases/cli/*.toml, one per file, and a few that need more.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <toml++/toml.h>

#include "command.hpp"

namespace kbh::test {
namespace {

using ::testing::HasSubstr;

const fs::path kCases = fs::path(KBH_SOURCE_DIR) / "tests/cases/cli";

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const fs::path& file : list_files(kCases)) names.push_back(file.stem().string());
  return names;
}

template <typename Node>
std::vector<std::string> words_of(Node node) {
  std::vector<std::string> words;
  if (const auto* array = node.as_array())
    for (const auto& word : *array) words.push_back(word.template value_or<std::string>(""));
  return words;
}

class CommandLine : public ::testing::TestWithParam<std::string> {};

TEST_P(CommandLine, EndsAsItSays) {
  const TempDir work("kbh-cli");
  const toml::table description = toml::parse_file((kCases / (GetParam() + ".toml")).string());
  // `setup` makes what the arguments name, in a folder of its own.
  const std::string setup = description["setup"].value_or(std::string("true"));
  ASSERT_EQ(run_command({"sh", "-euc", setup}, {.directory = work.path()}).exit_code, 0);
  const CommandResult result =
      kbh(words_of(description["arguments"]),
          {.environment = {{"KBH_STORE", (work.path() / "runs").string()}}, .directory = work.path()});
  SCOPED_TRACE("stdout: " + result.out + "\nstderr: " + result.err);
  EXPECT_EQ(result.exit_code, description["exit"].value<int>());
  for (const std::string& text : words_of(description["stderr"])) EXPECT_THAT(result.err, HasSubstr(text));
  for (const std::string& text : words_of(description["stdout"])) EXPECT_THAT(result.out, HasSubstr(text));
}

INSTANTIATE_TEST_SUITE_P(Cases, CommandLine, ::testing::ValuesIn(case_names()),
                         [](const auto& test) { return test.param; });

TEST(Ceilings, OfAGpuNeedOne) {
  if (fs::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU";
  const CommandResult result = kbh({"ceilings", "--device", "cuda"});
  EXPECT_EQ(result.exit_code, 3) << result.out << result.err;
  EXPECT_THAT(result.err, ::testing::AnyOf(HasSubstr("no NVIDIA driver"), HasSubstr("sees no device"),
                                           HasSubstr("built without CUDA decks")));
}

/// The verbs that --help lists.
std::vector<std::string> verbs() {
  const std::string completion = kbh({"completion", "fish"}).out;
  std::vector<std::string> names;
  const std::string marker = "__fish_use_subcommand -a ";
  for (std::size_t at = completion.find(marker); at != std::string::npos; at = completion.find(marker, at + 1)) {
    const std::size_t begin = at + marker.size();
    names.push_back(completion.substr(begin, completion.find(' ', begin) - begin));
  }
  return names;
}

TEST(Help, EveryVerbHasAPageAndExamples) {
  const std::vector<std::string> names = verbs();
  EXPECT_GE(names.size(), 9U);
  for (const std::string& verb : names) {
    EXPECT_TRUE(fs::exists(fs::path(KBH_SOURCE_DIR) / "docs/cli" / (verb + ".md"))) << verb;
    const CommandResult help = kbh({verb, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr("Examples:")) << verb;
    EXPECT_THAT(kbh({"--help"}).out, HasSubstr(verb));
  }
}

TEST(Completion, BashUnderstandsIt) {
  const std::string script = kbh({"completion", "bash"}).out;
  const CommandResult result =
      run_command({"bash", "-c", script + "\nCOMP_WORDS=(kbh gr); COMP_CWORD=1; _kbh; echo \"${COMPREPLY[@]}\""});
  EXPECT_EQ(result.out, "grade\n") << result.err;
  const CommandResult decks = run_command(
      {"bash", "-c", script + "\nCOMP_WORDS=(kbh grade --deck cpu-); COMP_CWORD=3; _kbh; echo \"${COMPREPLY[@]}\""});
  EXPECT_EQ(decks.out, "cpu-tiny\n");
}

TEST(New, WritesAStarterThatPasses) {
  const TempDir work("kbh-new");
  const CommandOptions here{.directory = work.path()};
  const CommandResult made = kbh({"new", "my", "--problem", "05_topk", "--lane", "host"}, here);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("kbh grade my --problem 05_topk"));
  EXPECT_TRUE(fs::exists(work.path() / "my" / "README.md"));
  EXPECT_EQ(kbh({"grade", "my", "--problem", "05_topk", "--deck", "cpu-tiny"}, here).exit_code, 0);
  EXPECT_EQ(kbh({"new", "my", "--problem", "05_topk"}, here).exit_code, 2);  // it would overwrite
}

TEST(Watch, TimesEverySaveAndSurvivesAHalfWrittenFile) {
  const TempDir work("kbh-watch");
  const fs::path file = work.path() / "submission.cpp";
  const std::string good = read_text(fs::path(KBH_SOURCE_DIR) / "kernels/05_topk/host-cpu-baseline/submission.cpp");
  write_atomic(file, good);
  const fs::path output = work.path() / "output";
  const pid_t watcher = ::fork();
  if (watcher == 0) {
    ::dup2(::creat(output.c_str(), 0600), STDOUT_FILENO);
    ::execl(KBH_BINARY_DIR "/kbh", "kbh", "bench", "--watch", file.c_str(), "-p", "05", "-d", "cpu-tiny",
            "--watch-runs", "3", "-q", nullptr);
    ::_exit(127);
  }
  const auto lines = [&] {
    const std::string text = fs::exists(output) ? read_text(output) : "";
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto wait_for_more_than = [&](std::ptrdiff_t count) {
    for (int i = 0; i < 3000 && lines() <= count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  wait_for_more_than(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const std::ptrdiff_t first = lines();
  write_atomic(file, "int kbh_run(");
  wait_for_more_than(first);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  write_atomic(file, good + "\n");
  int status = 0;
  ::waitpid(watcher, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const std::string text = read_text(output);
  EXPECT_THAT(text, HasSubstr("not a grade"));
  EXPECT_THAT(text, HasSubstr("build_failed"));
}

}  // namespace
}  // namespace kbh::test
