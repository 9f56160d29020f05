// What the programs themselves cost: starting, and a whole grade on the tiny deck with and without a compiled
// submission.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.hpp"

namespace {

namespace fs = std::filesystem;

/// Runs kbh with its output thrown away. The exit code, -1 when it did not exit.
int kbh(std::vector<std::string> arguments, const fs::path& cache) {
  arguments.insert(arguments.begin(), KBH_BINARY_DIR "/kbh");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  ::setenv("KBH_CACHE", cache.c_str(), 1);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;

  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

const fs::path kSubmission = KBH_SOURCE_DIR "/kernels/05_topk/host-cpu-baseline";

std::vector<std::string> verb(const std::string& name, const fs::path& store) {
  return {name, kSubmission.string(), "--problem", "05_topk", "--deck", "cpu-tiny", "--store", store.string()};
}

void start(benchmark::State& state) {
  const kbh::TempDir folder("kbh-bench");
  for (auto _ : state) {
    if (kbh({"problems"}, folder.path()) != 0) return state.SkipWithError("kbh problems failed");
  }
}
BENCHMARK(start)->Unit(benchmark::kMillisecond)->UseRealTime();

/// `kbh check`: from the start of the program to the verdict of every case. range(0): whether the compiler's result is
/// in the cache.
void check_tiny(benchmark::State& state) {
  const bool warm = state.range(0) != 0;
  const kbh::TempDir store("kbh-bench");
  const kbh::TempDir shared_cache("kbh-bench");
  if (kbh(verb("check", store.path()), shared_cache.path()) != 0) return state.SkipWithError("kbh check failed");
  for (auto _ : state) {
    const kbh::TempDir empty_cache("kbh-bench");
    const int code = kbh(verb("check", store.path()), warm ? shared_cache.path() : empty_cache.path());
    if (code != 0) return state.SkipWithError("kbh check failed");
  }
}
BENCHMARK(check_tiny)->ArgName("warm")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

/// A whole grade with a warm compile: what a test of the pipeline costs.
void grade_tiny(benchmark::State& state) {
  const kbh::TempDir store("kbh-bench");
  const kbh::TempDir cache("kbh-bench");
  if (kbh(verb("grade", store.path()), cache.path()) != 0) return state.SkipWithError("kbh grade failed");
  for (auto _ : state) {
    if (kbh(verb("grade", store.path()), cache.path()) != 0) return state.SkipWithError("kbh grade failed");
  }
}
BENCHMARK(grade_tiny)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
