// kbh ceilings: what this machine, or a GPU of it, can do, measured.
#include "device/cpu/ceilings.hpp"

#include <fmt/core.h>

#include <charconv>

#include "base/error.hpp"
#include "cli/cli.hpp"
#include "cli/terminal.hpp"
#include "report/table.hpp"
#ifdef KBH_WITH_CUDA
#include "device/cuda/ceilings.hpp"
#include "device/cuda/lease.hpp"
#endif

namespace kbh::cli {
namespace {

struct CeilingsArguments {
  std::string device = "cpu";
  bool again = false;
  bool json = false;
};

std::string size_text(std::int64_t bytes) {
  return bytes < (1 << 20) ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
}

void print(const cpu::Ceilings& c) {
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
}

int cpu_ceilings(const CeilingsArguments& arguments) {
  Terminal terminal(false);
  const Progress progress = terminal.progress();
  const cpu::Ceilings c =
      cpu::ceilings(arguments.again, [&](std::string_view line) { progress.note(std::string(line)); });
  terminal.clear();
  if (arguments.json) return fmt::print("{}", to_text(cpu::to_json(c))), 0;
  print(c);
  return 0;
}

/// N of "cuda:N"; "cuda" is the first.
int gpu_index(const std::string& device) {
  constexpr std::string_view kCuda = "cuda";
  int index = 0;
  const char* const begin = device.data() + kCuda.size() + 1;
  const char* const end = device.data() + device.size();
  if (device == kCuda) return index;
  if (device.starts_with("cuda:") && begin != end) {
    const auto [stop, error] = std::from_chars(begin, end, index);
    if (error == std::errc() && stop == end && index >= 0) return index;
  }
  fail(ErrorKind::usage, "--device {}: expected cpu, cuda or cuda:N", device);
}

#ifdef KBH_WITH_CUDA

void print(const cuda::Ceilings& c) {
  Table memory{{"bytes", "read us", "write us", "copy us", "read GB/s", "write GB/s", "copy GB/s"},
               std::vector(7, Align::right),
               {}};
  for (const cuda::BandwidthPoint& p : c.bandwidth)
    memory.rows.push_back({size_text(p.bytes), fmt::format("{:.2f}", p.read_us), fmt::format("{:.2f}", p.write_us),
                           fmt::format("{:.2f}", p.copy_us), fmt::format("{:.0f}", p.read_gbs()),
                           fmt::format("{:.0f}", p.write_gbs()), fmt::format("{:.0f}", p.copy_gbs())});
  Table math{{"dtype", "burst TFLOP/s", "sustained", "at MHz", "loop"},
             {Align::left, Align::right, Align::right, Align::right, Align::left},
             {}};
  for (const auto& [dtype, peak] : c.math)
    math.rows.push_back({dtype, fmt::format("{:.1f}", peak.burst_tflops), fmt::format("{:.1f}", peak.sustained_tflops),
                         fmt::format("{:.0f}", peak.sustained_mhz), peak.loop});
  fmt::print("{} ({}), driver {}, measured {}\none launch each, after a clean flush\n\n{}\n{}\n", c.device, c.uuid,
             c.driver, c.measured_at, memory.text(), math.text());
  fmt::print("memory read: {:.0f} GB/s of the bus's {:.0f}\n", c.memory_read_gbs(), c.bus_gbs);
  const cuda::LaunchFloors& f = c.floors;
  fmt::print("between two events: nothing {:.2f} us, an empty kernel {:.2f}, two {:.2f}, a graph of one {:.2f}",
             f.nothing_us, f.empty_kernel_us, f.two_kernels_us, f.graph_us);
  fmt::print("{}\n", f.cluster_us ? fmt::format(", a cluster of 8 {:.2f}", *f.cluster_us) : "");
}

int gpu_ceilings(const CeilingsArguments& arguments, int index) {
  const cuda::DeviceInfo device = cuda::device_info(index);
  const cuda::Lease lease(device.uuid);
  Terminal terminal(false);
  const Progress progress = terminal.progress();
  const cuda::Ceilings c =
      cuda::ceilings(device, arguments.again, [&](std::string_view line) { progress.note(std::string(line)); });
  terminal.clear();
  if (arguments.json) return fmt::print("{}", to_text(cuda::to_json(c))), 0;
  print(c);
  return 0;
}

#else

int gpu_ceilings(const CeilingsArguments& arguments, int) {
  fail(ErrorKind::machine, "--device {}: this kbh was built without CUDA decks", arguments.device);
}

#endif

}  // namespace

void add_ceilings(Cli& cli) {
  static CeilingsArguments arguments;
  CLI::App* verb =
      cli.verb("ceilings", "Measure this machine or a GPU of it: bandwidth by size, arithmetic, launch floors (cached)",
               "  kbh ceilings\n  kbh ceilings --device cuda\n  kbh ceilings --again --json");
  verb->add_option("--device", arguments.device, "cpu, cuda or cuda:N")->capture_default_str();
  verb->add_flag("--again", arguments.again, "measure even when a measurement is cached");
  verb->add_flag("--json", arguments.json, "print the kbh.ceilings/1 or kbh.cuda-ceilings/1 document");
  cli.on(verb, [] {
    return arguments.device == "cpu" ? cpu_ceilings(arguments) : gpu_ceilings(arguments, gpu_index(arguments.device));
  });
}

}  // namespace kbh::cli
