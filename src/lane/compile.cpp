#include "lane/compile.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <map>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"

namespace kbh {
namespace {

constexpr std::size_t kLogLimit = 256 << 10;
constexpr std::int64_t kLargestProduct = std::int64_t{64} << 20;

/// The line of `--version` that tells builds apart: the first of g++ and clang, the last of nvcc.
std::string version_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.find("nvcc") == std::string::npos) return text.substr(0, text.find('\n'));
  return text.substr(text.rfind('\n') + 1);
}

std::string version_of(const Compilation& what, sandbox::Level level) {
  // Asked once per process: starting a compiler costs more than a cache hit.
  static std::map<std::string, std::string> known;
  std::string& version = known[what.compiler];
  if (!version.empty()) return version;
  sandbox::Spec spec;
  spec.level = level;
  spec.profile = sandbox::Profile::compiler;
  for (const fs::path& folder : what.toolkit) spec.read_only.push_back({folder, {}});
  spec.argv = {what.compiler, "--version"};
  spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  const sandbox::RunResult result = sandbox::run(spec, 20, 4096);
  if (result.exit_code != 0)
    fail(ErrorKind::machine, "{} --version failed in the sandbox: {}", what.compiler, result.output);
  return version = version_line(result.output);
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
    const fs::path headers = resource_root() / "include" / "kbh";
    for (const fs::path& header : list_files(headers)) {
      const fs::path target = include() / "kbh" / header;
      make_open_folder(target.parent_path());
      write_atomic(target, read_text(headers / header));
    }
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

std::string cache_key(const Submission& submission, const Compilation& what, const std::string& version) {
  std::string all =
      fmt::format("{}\n{}\n{}\n{}\n{}\n", what.lane, submission.sha256, version, join(what.flags), what.machine);
  for (const fs::path& header : list_files(resource_root() / "include" / "kbh"))
    all += "\n" + sha256_file(resource_root() / "include" / "kbh" / header);
  return sha256_hex(all);
}

/// Regular, of sane size, readable by us: what a compiler (untrusted by now) left in the output folder.
std::string checked_product(const fs::path& path) {
  struct stat info {};
  const std::string name = path.filename().string();
  if (::lstat(path.c_str(), &info) != 0) return "the compiler left no " + name;
  if (!S_ISREG(info.st_mode)) return name + " is not a regular file";
  if (info.st_size > kLargestProduct) return fmt::format("{} has {} bytes, more than 64 MiB", name, info.st_size);
  return {};
}

/// What an earlier build left in the cache; not ok when there is nothing, or a file of it has changed.
BuildResult cached(const fs::path& cache, const Compilation& what) {
  BuildResult result;
  const fs::path record = cache / "build.json";
  if (!fs::exists(record)) return result;
  const Json json = Json::parse(read_text(record), nullptr, false);
  if (!json.is_object()) return result;
  for (const std::string& product : what.products)
    if (!fs::exists(cache / product) || json.value(product, "") != sha256_file(cache / product)) return result;
  result.ok = result.cached = true;
  result.artifact = cache / what.products.front();
  result.artifact_sha256 = json.value(what.products.front(), "");
  result.command = json.value("command", "");
  result.log = json.value("log", "");
  return result;
}

/// Moves the products into the cache; the words of the first that cannot be kept.
std::string keep(const fs::path& output, const fs::path& cache, const Compilation& what, BuildResult& result) {
  for (const std::string& product : what.products)
    if (std::string problem = checked_product(output / product); !problem.empty()) return problem;
  fs::create_directories(cache);
  Json record{{"command", result.command}, {"compiler", result.compiler}, {"log", result.log}};
  for (const std::string& product : what.products) {
    const std::string content = read_text(output / product);
    record[product] = sha256_hex(content);
    write_atomic(cache / product, content);
  }
  write_atomic(cache / "build.json", to_text(record));
  result.artifact = cache / what.products.front();
  result.artifact_sha256 = record[what.products.front()];
  return {};
}

}  // namespace

BuildResult compile(const Submission& submission, const Compilation& what, sandbox::Level level,
                    const DeckLimits& limits) {
  const std::string version = version_of(what, level);
  const fs::path cache = cache_dir() / "artifacts" / cache_key(submission, what, version);
  BuildResult result = cached(cache, what);
  result.compiler = version;
  if (result.ok) return result;

  const BuildFolder folder(submission);
  const sandbox::Bind sources{folder.sources(), "/kbh/submission"};
  const sandbox::Bind include{folder.include(), "/kbh/include"};
  const sandbox::Bind output{folder.output(), "/kbh/out"};
  const fs::path inside = sandbox::seen_at(output, level);
  sandbox::Spec spec;
  spec.level = level;
  spec.profile = sandbox::Profile::compiler;
  spec.read_only = {sources, include};
  for (const fs::path& more : what.toolkit) spec.read_only.push_back({more, {}});
  spec.writable = {output};
  spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TMPDIR=" + inside.string()};
  spec.directory = sandbox::seen_at(sources, level).string();
  spec.limits.memory_bytes = what.memory_bytes;
  spec.limits.file_bytes = kLargestProduct;
  spec.limits.cpu_seconds = limits.build_seconds * 2;
  spec.argv = {what.compiler};
  const auto add = [&](const std::vector<std::string>& words) {
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  };
  add(what.flags);
  add({"-I", sandbox::seen_at(include, level).string(), "-I", ".", submission.main().path.string()});
  add(what.output_flags(inside));
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
  const std::string problem = keep(folder.output(), cache, what, result);
  if (!problem.empty()) result.log += "\n[" + problem + "]\n";
  result.ok = problem.empty();
  return result;
}

}  // namespace kbh
