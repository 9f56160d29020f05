#include "lane/host/builder.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "device/cpu/topology.hpp"

namespace kbh::host {
namespace {

constexpr std::size_t kLogLimit = 256 << 10;
constexpr std::int64_t kCompilerMemory = std::int64_t{4} << 30;
constexpr std::int64_t kLargestArtifact = std::int64_t{64} << 20;

std::string version_of(const std::string& compiler, sandbox::Level level) {
  // Asked once per process: starting g++ costs more than a cache hit.
  static std::string known_for;
  static std::string version;
  if (known_for == compiler) return version;
  sandbox::Spec spec;
  spec.level = level;
  spec.profile = sandbox::Profile::compiler;
  spec.argv = {compiler, "--version"};
  spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  const sandbox::RunResult result = sandbox::run(spec, 20, 4096);
  if (result.exit_code != 0)
    fail(ErrorKind::machine, "{} --version failed in the sandbox: {}", compiler, result.output);
  version = result.output.substr(0, result.output.find('\n'));
  known_for = compiler;
  return version;
}

/// The sources and an output folder where the compiler's own uid can reach them.
class BuildFolder {
 public:
  explicit BuildFolder(const Submission& submission) {
    fs::permissions(root_.path(), fs::perms(0711));
    for (const SourceFile& file : submission.files) {
      const fs::path target = sources() / file.path;
      make_open_folder(target.parent_path());
      write_atomic(target, file.content);
    }
    fs::create_directory(output());
    fs::permissions(output(), fs::perms(0777));
    make_open_folder(include() / "kbh");
    for (const auto& header : fs::directory_iterator(resource_root() / "include" / "kbh"))
      if (header.is_regular_file())
        write_atomic(include() / "kbh" / header.path().filename(), read_text(header.path()));
  }
  [[nodiscard]] fs::path sources() const { return root_.path() / "submission"; }
  [[nodiscard]] fs::path include() const { return root_.path() / "include"; }
  [[nodiscard]] fs::path output() const { return root_.path() / "out"; }

 private:
  void make_open_folder(const fs::path& folder) const {
    fs::create_directories(folder);
    for (fs::path p = folder; p != root_.path(); p = p.parent_path()) fs::permissions(p, fs::perms(0755));
  }
  TempDir root_{"kbh-build"};
};

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string cache_key(const Submission& submission, const std::string& compiler,
                      const std::vector<std::string>& flags) {
  std::string all = fmt::format("host/1\n{}\n{}\n{}\n", submission.sha256, compiler, join(flags));
  // -march=native: the same text compiles differently on another processor.
  all += cpu::topology().model + "\n";
  for (const std::string& isa : cpu::topology().isa) all += isa + " ";
  for (const fs::path& header : list_files(resource_root() / "include" / "kbh"))
    all += "\n" + sha256_file(resource_root() / "include" / "kbh" / header);
  return sha256_hex(all);
}

/// Regular, of sane size, readable by us: what a compiler (untrusted by now) left in the output folder.
std::string checked_artifact(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return "the compiler left no submission.so";
  if (!S_ISREG(info.st_mode)) return "submission.so is not a regular file";
  if (info.st_size > kLargestArtifact) return fmt::format("submission.so has {} bytes, more than 64 MiB", info.st_size);
  return {};
}

}  // namespace

std::string find_compiler() {
  if (const char* given = std::getenv("KBH_CXX"); given && *given) return given;
  for (const char* path : {"/usr/bin/g++", "/usr/bin/clang++"})
    if (fs::exists(path)) return path;
  return {};
}

BuildResult build(const Submission& submission, sandbox::Level level, const DeckLimits& limits) {
  const std::string compiler = find_compiler();
  if (compiler.empty())
    fail(ErrorKind::machine, "no C++ compiler: install one with `apt-get install g++`, or name it in KBH_CXX");

  BuildResult result;
  result.compiler = version_of(compiler, level);
  std::vector<std::string> flags = {"-std=c++20",
                                    "-O3",
                                    "-march=native",
                                    "-g1",
                                    "-shared",
                                    "-fPIC",
                                    "-pthread",
                                    "-fvisibility=hidden",
                                    "-fdiagnostics-color=never"};
  flags.insert(flags.end(), submission.flags.begin(), submission.flags.end());

  const fs::path cache = cache_dir() / "artifacts" / cache_key(submission, result.compiler, flags);
  result.artifact = cache / "submission.so";
  const fs::path record = cache / "build.json";
  if (fs::exists(record) && fs::exists(result.artifact)) {
    const Json json = Json::parse(read_text(record), nullptr, false);
    const std::string expected = json.is_object() ? json.value("artifact_sha256", "") : "";
    if (!expected.empty() && expected == sha256_file(result.artifact)) {
      result.ok = result.cached = true;
      result.artifact_sha256 = expected;
      result.command = json.value("command", "");
      result.log = json.value("log", "");
      return result;
    }
  }

  const BuildFolder folder(submission);
  const sandbox::Bind sources{folder.sources(), "/kbh/submission"};
  const sandbox::Bind include{folder.include(), "/kbh/include"};
  const sandbox::Bind output{folder.output(), "/kbh/out"};
  sandbox::Spec spec;
  spec.level = level;
  spec.profile = sandbox::Profile::compiler;
  spec.read_only = {sources, include};
  spec.writable = {output};
  spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TMPDIR=" + sandbox::seen_at(output, level).string()};
  spec.directory = sandbox::seen_at(sources, level).string();
  spec.limits.memory_bytes = kCompilerMemory;
  spec.limits.file_bytes = kLargestArtifact;
  spec.limits.cpu_seconds = limits.build_seconds * 2;
  spec.argv = {compiler};
  spec.argv.insert(spec.argv.end(), flags.begin(), flags.end());
  spec.argv.insert(spec.argv.end(),
                   {"-I", sandbox::seen_at(include, level).string(), "-I", ".", submission.main().path.string(), "-o",
                    (sandbox::seen_at(output, level) / "submission.so").string()});
  result.command = join(spec.argv);
  const sandbox::RunResult run = sandbox::run(spec, limits.build_seconds, kLogLimit);
  result.seconds = run.seconds;
  result.log = run.output;
  replace_all(result.log, sandbox::seen_at(sources, level).string() + "/", "");
  if (run.timed_out) {
    result.timed_out = true;
    result.log += fmt::format("\n[stopped: the compiler took more than {:g} s]\n", limits.build_seconds);
    return result;
  }
  if (run.signal != 0) result.log += fmt::format("\n[the compiler was killed by signal {}]\n", run.signal);
  if (run.signal != 0 || run.exit_code != 0) return result;
  if (const std::string problem = checked_artifact(folder.output() / "submission.so"); !problem.empty()) {
    result.log += "\n[" + problem + "]\n";
    return result;
  }

  fs::create_directories(cache);
  const std::string object = read_text(folder.output() / "submission.so");
  result.artifact_sha256 = sha256_hex(object);
  write_atomic(result.artifact, object);
  write_atomic(record, to_text({{"artifact_sha256", result.artifact_sha256},
                                {"command", result.command},
                                {"compiler", result.compiler},
                                {"log", result.log}}));
  result.ok = true;
  return result;
}

}  // namespace kbh::host
