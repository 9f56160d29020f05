// kbh doctor: what this machine offers, what is missing, and the command that installs it.
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "cli/cli.hpp"
#include "cli/findings.hpp"
#include "device/cpu/topology.hpp"
#include "lane/host/builder.hpp"
#include "lane/sealed/builder.hpp"
#include "report/table.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh::cli {
namespace {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::note:
      return "note";
    case Status::missing:
      return "MISSING";
  }
  return "?";
}

Finding processor() {
  const cpu::Topology& t = cpu::topology();
  std::string isa;
  for (const std::string& one : t.isa) isa += " " + one;
  return {"cpu", Status::ok,
          fmt::format("{}, {} processors, L2 {} KiB each, last-level cache {} MiB, memory {:.1f} GiB;{}", t.model,
                      t.processors.size(), t.l2_bytes >> 10, t.llc_bytes >> 20,
                      static_cast<double>(t.memory_bytes) / (1 << 30), isa),
          ""};
}

Finding compiler() {
  const std::string path = host::find_compiler();
  if (path.empty())
    return {"host compiler", Status::missing, "no g++ or clang++ in /usr/bin: host-lane submissions cannot be built",
            "apt-get install g++ (or name one in KBH_CXX)"};
  return {"host compiler", Status::ok, path, ""};
}

Finding nvcc() {
  const fs::path toolkit = sealed::find_toolkit();
  if (toolkit.empty())
    return {"nvcc", Status::note, "not found: sealed submissions cannot be built",
            "install the CUDA toolkit, 12.8 or later (or set CUDA_HOME to its folder)"};
  return {"nvcc", Status::ok, (toolkit / "bin" / "nvcc").string(), ""};
}

Finding sandbox_level() {
  const sandbox::Support& s = sandbox::support();
  const Status status = s.level == sandbox::Level::full   ? Status::ok
                        : s.level == sandbox::Level::none ? Status::missing
                                                          : Status::note;
  return {"sandbox", status, fmt::format("{}: {}", sandbox::name_of(s.level), s.why), s.missing};
}

Finding cache() {
  try {
    return {"cache", Status::ok, cache_dir().string(), ""};
  } catch (const Error& error) {
    return {"cache", Status::missing, error.what(), "set KBH_CACHE to a folder of yours"};
  }
}

Finding resources() {
  try {
    return {"resources", Status::ok, resource_root().string(), ""};
  } catch (const Error& error) {
    return {"resources", Status::missing, error.what(), "set KBH_ROOT"};
  }
}

/// A program of ours that kbh starts.
Finding beside_us(const std::string& topic) {
  const fs::path path = executable_path().parent_path() / ("kbh-" + topic);
  if (::access(path.c_str(), X_OK) == 0) return {topic, Status::ok, path.string(), ""};
  return {topic, Status::missing, path.string() + " is not there", "build it: make"};
}

int doctor(bool json) {
  std::vector findings = {processor(),         compiler(),           nvcc(),      sandbox_level(),
                          beside_us("worker"), beside_us("planner"), resources(), cache()};
  for (Finding& finding : gpu_findings()) findings.push_back(std::move(finding));
  bool able = true;
  Json list = Json::array();
  Table table{{"what", "", "finding"}, {Align::left, Align::left, Align::left}, {}};
  for (const Finding& f : findings) {
    able &= f.status != Status::missing;
    list.push_back({{"topic", f.topic}, {"status", name_of(f.status)}, {"finding", f.text}, {"fix", f.fix}});
    table.rows.push_back({f.topic, std::string(name_of(f.status)), f.text});
    if (!f.fix.empty()) table.rows.push_back({"", "", "-> " + f.fix});
  }
  if (json) {
    fmt::print("{}", to_text({{"schema", "kbh.doctor/1"}, {"able", able}, {"findings", list}}));
  } else {
    fmt::print("kbh {}\n\n{}\n{}\n", KBH_VERSION, table.text(),
               able ? "ready: kbh grade kernels/05_topk/host-cpu --problem 05_topk --deck cpu"
                    : "not ready: see MISSING above");
  }
  return able ? 0 : 3;
}

}  // namespace

void add_doctor(Cli& cli) {
  static bool json = false;
  CLI::App* verb =
      cli.verb("doctor", "Devices, compiler, sandbox level, folders; what is missing and how to install it",
               "  kbh doctor\n  kbh doctor --json");
  verb->add_flag("--json", json, "machine-readable");
  cli.on(verb, [] { return doctor(json); });
}

}  // namespace kbh::cli
