#include "lane/host/builder.hpp"

#include <cstdlib>

#include "base/error.hpp"
#include "base/files.hpp"
#include "device/cpu/topology.hpp"

namespace kbh::host {
namespace {

/// -march=native: the same text compiles differently on another processor.
std::string processor() {
  std::string all = cpu::topology().model;
  for (const std::string& isa : cpu::topology().isa) all += " " + isa;
  return all;
}

}  // namespace

std::string find_compiler() {
  if (const char* given = std::getenv("KBH_CXX"); given && *given) return given;
  for (const char* path : {"/usr/bin/g++", "/usr/bin/clang++"})
    if (fs::exists(path)) return path;
  return {};
}

BuildResult build(const Submission& submission, sandbox::Level level, const DeckLimits& limits) {
  Compilation what;
  what.lane = "host/2";
  what.compiler = find_compiler();
  if (what.compiler.empty())
    fail(ErrorKind::machine, "no C++ compiler: install one with `apt-get install g++`, or name it in KBH_CXX");
  what.flags = {"-std=c++20",
                "-O3",
                "-march=native",
                "-g1",
                "-shared",
                "-fPIC",
                "-pthread",
                "-fvisibility=hidden",
                "-fdiagnostics-color=never"};
  what.flags.insert(what.flags.end(), submission.flags.begin(), submission.flags.end());
  what.products = {"submission.so"};
  what.machine = processor();
  what.output_flags = [](const fs::path& output) -> std::vector<std::string> {
    return {"-o", (output / "submission.so").string()};
  };
  return compile(submission, what, level, limits);
}

}  // namespace kbh::host
