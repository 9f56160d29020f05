// kbh ceilings: what this machine can do, measured.
#include "device/cpu/ceilings.hpp"

#include <fmt/core.h>

#include "cli/cli.hpp"
#include "cli/terminal.hpp"
#include "report/table.hpp"

namespace kbh::cli {
namespace {

struct CeilingsArguments {
  bool again = false;
  bool json = false;
};

std::string size_text(std::int64_t bytes) {
  return bytes < (1 << 20) ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
}

int print(const CeilingsArguments& arguments) {
  Terminal terminal(false);
  const Progress progress = terminal.progress();
  const cpu::Ceilings c =
      cpu::ceilings(arguments.again, [&](std::string_view line) { progress.note(std::string(line)); });
  terminal.clear();
  if (arguments.json) return fmt::print("{}", to_text(cpu::to_json(c))), 0;
  Table table{{"working set", "read GB/s", "write GB/s", "copy GB/s", "cold read GB/s"},
              {Align::right, Align::right, Align::right, Align::right, Align::right},
              {}};
  for (const cpu::BandwidthPoint& p : c.bandwidth)
    table.rows.push_back({size_text(p.bytes), fmt::format("{:.1f}", p.read_gbs), fmt::format("{:.1f}", p.write_gbs),
                          fmt::format("{:.1f}", p.copy_gbs), fmt::format("{:.1f}", p.cold_read_gbs)});
  fmt::print("{}, {} threads, measured {}\n\n{}\n", c.model, c.threads, c.measured_at, table.text());
  for (const auto& [dtype, gflops] : c.peak_gflops)
    fmt::print("fused multiply-add {}: {:.1f} GFLOP/s\n", dtype, gflops);
  fmt::print("memory read: {:.1f} GB/s\ncall floor (wake a sleeping pool and join it): {:.1f} us\n",
             c.memory_read_gbs(), c.call_floor_us);
  return 0;
}

}  // namespace

void add_ceilings(Cli& cli) {
  static CeilingsArguments arguments;
  CLI::App* verb = cli.verb("ceilings", "Measure this machine: bandwidth by working set, FMA peak, call floor (cached)",
                            "  kbh ceilings\n  kbh ceilings --again --json");
  verb->add_flag("--again", arguments.again, "measure even when a measurement is cached");
  verb->add_flag("--json", arguments.json, "print the kbh.ceilings/1 document");
  cli.on(verb, [] { return print(arguments); });
}

}  // namespace kbh::cli
