// How the ceilings are measured.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/statistics.hpp"
#include "device/cpu/ceilings.hpp"
#include "device/cpu/flush.hpp"
#include "device/cpu/simd_kernels.hpp"
#include "device/cpu/team.hpp"
#include "device/cpu/topology.hpp"

namespace kbh::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

constexpr std::int64_t kSmallestSet = 256 << 10;
constexpr std::int64_t kLargestSet = 256 << 20;

// One sample of a hot loop moves about this much: a millisecond or less, against which the clock and the barrier
// vanish, and which other processes seldom cut into (their turn lasts about 3 ms: with five of them on two processors,
// samples of 128 MiB came out at 11 GB/s instead of 46).
constexpr std::size_t kBytesPerHotSample = std::size_t{32} << 20;

// What the budget is spent on.
constexpr double kHotPart = 0.4;
constexpr double kColdPart = 0.4;
constexpr double kArithmeticPart = 0.15;

/// Memory of the kind that submissions read: shared, from a memfd, in small pages.
class SharedBuffer {
 public:
  explicit SharedBuffer(std::size_t bytes) : bytes_(bytes), fd_(::memfd_create("kbh-ceilings", MFD_CLOEXEC)) {
    if (!fd_ || ::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) refuse();
    memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (memory_ == MAP_FAILED) refuse();
  }
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;
  ~SharedBuffer() { ::munmap(memory_, bytes_); }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  [[noreturn]] void refuse() const {
    fail(ErrorKind::machine, "cannot get {} MiB of shared memory to measure the ceilings: {}", bytes_ >> 20,
         std::strerror(errno));
  }

  std::size_t bytes_;
  UniqueFd fd_;
  void* memory_ = nullptr;
};

/// The part of a working set that one thread has.
struct Slice {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// A working set spread evenly over the threads, in whole granules.
struct WorkingSet {
  std::byte* data = nullptr;
  std::size_t slice_bytes = 0;
  std::size_t threads = 0;

  [[nodiscard]] std::size_t bytes() const { return slice_bytes * threads; }
  [[nodiscard]] Slice slice(std::size_t member) const { return {data + member * slice_bytes, slice_bytes}; }
};

class Bench {
 public:
  Bench(double seconds, const Topology& machine)

      : seconds_(seconds),
        patience_(seconds),
        llc_bytes_(machine.llc_bytes),
        team_(machine.processors),
        buffer_(buffer_bytes(machine)) {
    const WorkingSet all = working_set(buffer_.bytes(), 0);
    team_.run([&](std::size_t member) { std::memset(all.slice(member).data, 1, all.slice_bytes); });
  }

  /// Powers of two up to the buffer's size.
  [[nodiscard]] std::vector<std::size_t> set_sizes() const {
    std::vector<std::size_t> sizes;
    for (auto bytes = static_cast<std::size_t>(kSmallestSet); bytes <= buffer_.bytes(); bytes *= 2)
      if (bytes >= team_.size() * 2 * kKernelGranule) sizes.push_back(bytes);
    return sizes;
  }

  BandwidthPoint bandwidth(std::size_t bytes, std::size_t points) {
    const WorkingSet set = working_set(bytes, 0);
    BandwidthPoint point;
    point.bytes = static_cast<std::int64_t>(set.bytes());
    const double budget = seconds_ * kHotPart / static_cast<double>(points) / 6;
    const SimdKernels& loops = simd_kernels().front();
    for (const auto read : {loops.read, loops.read_streams})
      raise(point.read_gbs, hot(set, budget, [&](Slice s) { checksum_ ^= read(s.data, s.bytes); }));
    for (const auto write : {loops.write, loops.write_streaming})
      raise(point.write_gbs, hot(set, budget, [&](Slice s) { write(s.data, s.bytes, 1); }));
    for (const auto copy : {loops.copy, loops.copy_streaming})
      raise(point.copy_gbs, hot(set, budget, [&](Slice s) {
              const std::size_t half = s.bytes / 2 / kKernelGranule * kKernelGranule;
              copy(s.data + half, s.data, half);
            }));
    // Of a set that is several times the cache, nothing is left from the pass before: warm is cold.
    point.cold_read_gbs = point.bytes >= 4 * llc_bytes_
                              ? point.read_gbs
                              : cold_read(bytes, seconds_ * kColdPart / static_cast<double>(points));
    return point;
  }

  /// Best over the instruction sets that have the loop: the widest one lowers the clock of some processors. 0 without
  /// any.
  double peak_gflops(SimdKernels::MultiplyAdd SimdKernels::*loop, std::int64_t SimdKernels::*flops_per_round) {
    constexpr std::int64_t kRounds = 500'000;  // of 12 operations: 2 ms at one per cycle and 3 GHz
    const double budget = seconds_ * kArithmeticPart / 3 / static_cast<double>(simd_kernels().size());
    double best = 0;
    for (const SimdKernels& loops : simd_kernels()) {
      if (!(loops.*loop)) continue;
      const double seconds = seconds_of(budget, [&] {
        return together([&](std::size_t) { checksum_ ^= static_cast<std::uint64_t>((loops.*loop)(kRounds, 2)); });
      });
      const auto flops = static_cast<double>(kRounds * loops.*flops_per_round);
      best = std::max(best, flops * static_cast<double>(team_.size()) / seconds * 1e-9);
    }
    return best;
  }

 private:
  static std::size_t buffer_bytes(const Topology& machine) {
    auto bytes = static_cast<std::size_t>(kLargestSet);
    while (bytes < static_cast<std::size_t>(4 * machine.llc_bytes)) bytes *= 2;
    // Beside it stand the flusher's buffer and everybody else.
    const auto most = static_cast<std::size_t>(std::max(machine.memory_bytes / 4, 4 * kSmallestSet));
    while (machine.memory_bytes > 0 && bytes > most) bytes /= 2;
    return bytes;
  }

  [[nodiscard]] WorkingSet working_set(std::size_t bytes, std::size_t offset) const {
    const std::size_t slice = std::max(bytes / team_.size() / kKernelGranule, std::size_t{1}) * kKernelGranule;
    return {buffer_.data() + offset, slice, team_.size()};
  }

  struct Sample {
    double seconds = 0;
    bool preempted = false;
  };

  /// From the first member's start to the last one's end; all are awake and start together.
  Sample together(const PinnedTeam::Job& job) {
    struct Part {
      Clock::time_point start, end;
      bool preempted = false;
    };
    SpinBarrier barrier(team_.size());
    std::vector<Part> parts(team_.size());
    team_.run([&](std::size_t member) {
      const std::int64_t before = preemptions();
      barrier.arrive_and_wait();
      const Clock::time_point start = Clock::now();
      job(member);
      const Clock::time_point end = Clock::now();
      parts[member] = {start, end, preemptions() != before};
    });
    Clock::time_point first = parts[0].start;
    Clock::time_point last = parts[0].end;
    for (const Part& part : parts) first = std::min(first, part.start), last = std::max(last, part.end);
    return {seconds_between(first, last), std::any_of(parts.begin(), parts.end(), [](auto& p) { return p.preempted; })};
  }

  /// Times that the calling thread had to give its processor to somebody else.
  static std::int64_t preemptions() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
  }

  /// The faster quartile of the samples that nobody cut into. On a busy machine these are waited for, on an account
  /// that all measurements share; without any, the fastest of the others must do.
  double seconds_of(double budget, const std::function<Sample()>& take) {
    constexpr std::size_t kLeast = 5;
    constexpr std::size_t kMost = 64;
    std::vector<double> whole;
    std::vector<double> all;
    const Clock::time_point start = Clock::now();
    double spent = 0;
    const auto enough = [&] {
      if (whole.size() >= kLeast) return spent >= budget || whole.size() >= kMost;
      return all.size() >= kLeast && spent >= budget + patience_;
    };
    while (!enough()) {
      const Sample sample = take();
      all.push_back(sample.seconds);
      if (!sample.preempted) whole.push_back(sample.seconds);
      spent = seconds_between(start, Clock::now());
    }
    patience_ = std::max(0.0, patience_ - std::max(0.0, spent - budget));
    return whole.empty() ? *std::min_element(all.begin(), all.end()) : quantile(whole, 0.25);
  }

  static void raise(double& best, double value) { best = std::max(best, value); }

  /// Passes over the working set without end; a sample is several passes over a small set, the next piece of a large
  /// one.
  double hot(const WorkingSet& set, double budget, const std::function<void(Slice)>& loop) {
    const std::size_t passes = std::max(std::size_t{1}, kBytesPerHotSample / set.bytes());
    const std::size_t pieces = std::max(std::size_t{1}, set.bytes() / kBytesPerHotSample);
    const std::size_t piece_bytes = set.slice_bytes / pieces / kKernelGranule * kKernelGranule;
    std::size_t piece = 0;
    const auto sample = [&] {
      const Sample taken = together([&](std::size_t member) {
        const Slice piece_of_slice{set.slice(member).data + piece * piece_bytes, piece_bytes};
        for (std::size_t pass = 0; pass < passes; ++pass) loop(piece_of_slice);
      });
      piece = (piece + 1) % pieces;
      return taken;
    };
    sample();  // fills the caches
    return static_cast<double>(passes * piece_bytes * set.threads) / seconds_of(budget, sample) * 1e-9;
  }

  /// One pass over memory that no cache holds, a different piece of the buffer each time: a submission's inputs rotate
  /// too, and their page translations are as cold as their data.
  double cold_read(std::size_t bytes, double budget) {
    const SimdKernels& loops = simd_kernels().front();
    double best = 0;
    std::size_t piece = 0;
    for (const auto read : {loops.read, loops.read_streams}) {
      std::size_t moved = 0;
      const double seconds = seconds_of(budget / 2, [&] {
        const WorkingSet set = working_set(bytes, piece++ % (buffer_.bytes() / bytes) * bytes);
        moved = set.bytes();
        flusher_.flush();
        return together([&](std::size_t member) {
          const Slice slice = set.slice(member);
          checksum_ ^= read(slice.data, slice.bytes);
        });
      });
      best = std::max(best, static_cast<double>(moved) / seconds * 1e-9);
    }
    return best;
  }

  double seconds_;
  double patience_;  // extra time left for samples that nobody cuts into
  std::int64_t llc_bytes_;
  PinnedTeam team_;
  SharedBuffer buffer_;
  CacheFlusher flusher_;
  std::atomic<std::uint64_t> checksum_{0};  // keeps the loops' results wanted
};

/// Start and join of threads that sleep, by a caller that takes the first processor's share itself and waits awake, as
/// a submission's pool does at best.
double call_floor_us(const Topology& machine) {
  if (machine.processors.size() < 2) return 0;
  std::vector<double> samples;
  std::thread caller([&] {
    pin_this_thread(machine.processors.front());
    PinnedTeam others({machine.processors.begin() + 1, machine.processors.end()});
    const PinnedTeam::Job nothing = [](std::size_t) {};
    for (int i = 0; i < 50; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // they are asleep again
      const Clock::time_point start = Clock::now();
      others.start(nothing);
      while (!others.finished()) relax();
      samples.push_back(seconds_between(start, Clock::now()) * 1e6);
    }
  });
  caller.join();
  return quantile(samples, 0.25);
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string size_text(std::int64_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
}

/// Other people's work makes every number too small; the quartiles forgive some of it.
void warn_when_busy(const Topology& machine, const CeilingsProgress& progress) {
  double load = 0;
  if (::getloadavg(&load, 1) == 1 && load > 0.5 * static_cast<double>(machine.processors.size()))
    progress(fmt::format("the load average is {:.1f} on {} processors: ceilings may come out low", load,
                         machine.processors.size()));
  if (machine.quota > 0 && machine.quota < static_cast<double>(machine.processors.size()))
    progress(fmt::format("a control group grants {} of {} processors: ceilings follow it", machine.quota,
                         machine.processors.size()));
}

}  // namespace

Ceilings measure_ceilings(double seconds, const CeilingsProgress& progress) {
  const Topology& machine = topology();
  warn_when_busy(machine, progress);
  Ceilings ceilings;
  ceilings.machine = machine_id();
  ceilings.model = machine.model;
  ceilings.isa = simd_kernels().front().isa;
  ceilings.threads = static_cast<int>(machine.processors.size());
  ceilings.llc_bytes = machine.llc_bytes;
  ceilings.measured_at = now_text();

  ceilings.call_floor_us = call_floor_us(machine);
  progress(fmt::format("call floor {:.1f} us", ceilings.call_floor_us));
  Bench bench(seconds, machine);
  const auto peak = [&](const char* dtype, double gflops) {
    if (gflops == 0) return;
    ceilings.peak_gflops[dtype] = gflops;
    progress(fmt::format("{} multiply-add {:.0f} GFLOP/s", dtype, gflops));
  };
  peak("fp32", bench.peak_gflops(&SimdKernels::fma_fp32, &SimdKernels::fp32_flops_per_round));
  peak("fp64", bench.peak_gflops(&SimdKernels::fma_fp64, &SimdKernels::fp64_flops_per_round));
  peak("bf16", bench.peak_gflops(&SimdKernels::dot_bf16, &SimdKernels::bf16_flops_per_round));
  const std::vector<std::size_t> sizes = bench.set_sizes();
  for (const std::size_t bytes : sizes) {
    const BandwidthPoint& p = ceilings.bandwidth.emplace_back(bench.bandwidth(bytes, sizes.size()));
    progress(fmt::format("{}: read {:.1f}, write {:.1f}, copy {:.1f}, cold read {:.1f} GB/s", size_text(p.bytes),
                         p.read_gbs, p.write_gbs, p.copy_gbs, p.cold_read_gbs));
  }
  return ceilings;
}

}  // namespace kbh::cpu
