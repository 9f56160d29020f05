#include "device/cpu/memory_probe.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "device/cpu/simd_kernels.hpp"
#include "device/cpu/team.hpp"
#include "device/cpu/topology.hpp"

namespace kbh::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// 0.1 ms at 40 GB/s: long against the barrier, short against the flush (6 ms) that goes before.
constexpr std::size_t kBytes = std::size_t{4} << 20;

}  // namespace

struct MemoryProbe::Impl {
  explicit Impl(const Topology& machine)
      : part(std::max(kKernelGranule, kBytes / machine.processors.size() / kKernelGranule * kKernelGranule)),
        memory(new(std::align_val_t{4096}) std::byte[part * machine.processors.size()]),
        team(machine.processors),
        barrier(machine.processors.size()),
        begin(machine.processors.size()),
        end(machine.processors.size()) {
    team.run([this](std::size_t member) { std::memset(part_of(member), 1, part); });
  }
  ~Impl() { ::operator delete[](memory, std::align_val_t{4096}); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] std::byte* part_of(std::size_t member) const { return memory + member * part; }

  std::size_t part;  // of one thread
  std::byte* memory;
  PinnedTeam team;
  SpinBarrier barrier;
  std::vector<Clock::time_point> begin;
  std::vector<Clock::time_point> end;
  std::atomic<std::uint64_t> checksum{0};
};

MemoryProbe::MemoryProbe() : impl_(std::make_unique<Impl>(topology())) {}
MemoryProbe::~MemoryProbe() = default;

double MemoryProbe::read_us() {
  Impl& s = *impl_;
  const auto read = simd_kernels().front().read_streams;
  s.team.run([&](std::size_t member) {
    s.barrier.arrive_and_wait();
    s.begin[member] = Clock::now();
    s.checksum ^= read(s.part_of(member), s.part);
    s.end[member] = Clock::now();
  });
  Clock::duration longest{};
  for (std::size_t member = 0; member < s.team.size(); ++member)
    longest = std::max(longest, s.end[member] - s.begin[member]);
  return std::chrono::duration<double, std::micro>(longest).count();
}

std::int64_t MemoryProbe::bytes() const { return static_cast<std::int64_t>(impl_->part * impl_->team.size()); }

}  // namespace kbh::cpu
