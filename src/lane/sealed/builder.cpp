#include "lane/sealed/builder.hpp"

#include <cstdlib>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kbh::sealed {

fs::path find_toolkit() {
  const auto has_nvcc = [](const fs::path& root) { return fs::exists(root / "bin" / "nvcc"); };
  if (const char* given = std::getenv("CUDA_HOME"); given && *given && has_nvcc(given)) return fs::canonical(given);
  if (has_nvcc("/usr/local/cuda")) return fs::canonical("/usr/local/cuda");
  if (fs::exists("/usr/bin/nvcc")) return fs::canonical("/usr/bin/nvcc").parent_path().parent_path();
  return {};
}

BuildResult build(const Submission& submission, const std::string& arch, sandbox::Level level,
                  const DeckLimits& limits) {
  const fs::path toolkit = find_toolkit();
  if (toolkit.empty())
    fail(ErrorKind::machine, "no nvcc: install the CUDA toolkit (12.8 or later) or set CUDA_HOME to its folder");
  Compilation what;
  what.lane = "sealed/1 " + arch;
  what.compiler = (toolkit / "bin" / "nvcc").string();
  // Everything under /usr is seen anyway.
  if (!toolkit.string().starts_with("/usr/")) what.toolkit = {toolkit};
  const std::string virtual_arch = "compute" + arch.substr(arch.find('_'));
  what.flags = {"-std=c++20", "-O3",
                "-gencode",   "arch=" + virtual_arch + ",code=" + arch,
                "-lineinfo",  "-cudart",
                "none",       "-shared",
                "-Xcompiler", "-fPIC,-fvisibility=hidden,-fdiagnostics-color=never"};
  what.flags.insert(what.flags.end(), submission.flags.begin(), submission.flags.end());
  what.products = {"submission.so", "submission.cubin", "submission.ptx"};
  what.output_flags = [](const fs::path& output) -> std::vector<std::string> {
    return {"--keep", "--keep-dir", output.string(), "-o", (output / "submission.so").string()};
  };
  what.memory_bytes = std::int64_t{16} << 30;  // address space: nvcc's passes map much more than they use
  return compile(submission, what, level, limits);
}

}  // namespace kbh::sealed
