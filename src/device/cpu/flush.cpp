#include "device/cpu/flush.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.hpp"
#include "device/cpu/team.hpp"
#include "device/cpu/topology.hpp"

namespace kbh::cpu {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Why blocks that are touched twice. Last-level caches of today resist scans: lines that were used more than once stay
// when lines that are used once stream past. Share of hot lines (dirty every other time) still cached after a sweep,
// two cores of an EPYC (Zen 4), 32 MiB of level 3, lines timed one by one in random order; 0.3 to 0.8 % is the floor of
// the method, which clflush reaches as well:
//
//   4 MiB hot        128 MiB written                                  81 %       5.0 ms
//                    128 MiB written, then 128 MiB read                6 %       9.2 ms
//                    256 MiB written, then 256 MiB read                0.5 %    20.5 ms
//   2 to 16 MiB hot  32 MiB in blocks of 8 MiB, each written, read     3 to 40 % 1.5 ms
//                    48 MiB in blocks of 16 MiB, the same              1 to 4 %  2.9 ms
//                    64 MiB in blocks of 4 to 16 MiB, the same         0.5 %     3.6 ms  <- twice the cache is enough
//                    64 MiB in blocks of 8 MiB, each read twice        0.6 %     2.8 ms   <- likewise, and clean
//
// So each half of the buffer empties the caches on its own; together they are the margin, at about 6 ms.
constexpr std::int64_t kBufferPerCache = 4;

/// Bytes that the caches hold, the larger of what the levels sum up to.
std::int64_t cache_bytes(const Topology& machine) { return std::max(machine.llc_bytes, machine.l2_total_bytes); }

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Anonymous memory, in huge pages where the system has them: a sweep then spends its time on lines, not on page walks.
class HugeBuffer {
 public:
  explicit HugeBuffer(std::size_t bytes)
      : mapped_(bytes + kHugePage),
        bytes_(bytes),
        memory_(::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED)
      fail(ErrorKind::machine, "cannot map {} MiB to flush the caches with: {}: raise the memory limit", bytes >> 20,
           std::strerror(errno));
    void* aligned = memory_;
    std::size_t room = mapped_;
    data_ = static_cast<std::byte*>(std::align(kHugePage, bytes_, aligned, room));
    ::madvise(data_, bytes_, MADV_HUGEPAGE);  // advice: small pages serve as well, slower
  }
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;
  ~HugeBuffer() { ::munmap(memory_, mapped_); }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t mapped_;
  std::size_t bytes_;
  void* memory_;
  std::byte* data_ = nullptr;
};

// Ordinary stores, one per line: non-temporal ones would go past the caches and evict nothing.
void write_lines(std::byte* block, std::size_t bytes, std::uint64_t value) {
  for (std::size_t at = 0; at < bytes; at += kLine) *reinterpret_cast<volatile std::uint64_t*>(block + at) = value;
}

void read_lines(const std::byte* block, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLine) (void)*reinterpret_cast<const volatile std::uint64_t*>(block + at);
}

}  // namespace

struct CacheFlusher::Impl {
  Impl(const Topology& machine, std::size_t block_bytes, std::size_t part_bytes)
      : block(block_bytes), part(part_bytes), buffer(part * machine.processors.size()), team(machine.processors) {
    // Every page gets memory of its own now, near its thread; untouched ones would all be read from one page of zeros.
    team.run([this](std::size_t member) { std::memset(buffer.data() + member * part, 1, part); });
  }

  void sweep(std::size_t member) const {
    std::byte* const begin = buffer.data() + member * part;
    std::byte* const clean = begin + part / 2;
    std::byte* const end = begin + part;
    for (std::byte* at = begin; at < clean; at += block) {
      write_lines(at, block, sweeps);
      read_lines(at, block);
    }
    for (const std::byte* at = clean; at < end; at += block) {
      read_lines(at, block);
      read_lines(at, block);
    }
  }

  std::size_t block;  // of one thread
  std::size_t part;   // of one thread: an even number of blocks
  HugeBuffer buffer;
  PinnedTeam team;
  std::uint64_t sweeps = 0;
};

CacheFlusher::CacheFlusher() {
  const Topology& machine = topology();
  const auto threads = static_cast<std::int64_t>(machine.processors.size());
  // All blocks together: a quarter of the last level, but beyond the second one, so that the second touch reaches the
  // last level.
  const std::int64_t blocks = std::max(machine.llc_bytes / 4, machine.l2_total_bytes * 3 / 2);
  const auto block = round_up(static_cast<std::size_t>((blocks + threads - 1) / threads), kLine);
  const auto per_thread = static_cast<std::size_t>((kBufferPerCache * cache_bytes(machine) + threads - 1) / threads);
  impl_ = std::make_unique<Impl>(machine, block, round_up(per_thread, 2 * block));
}

CacheFlusher::~CacheFlusher() = default;

void CacheFlusher::flush() {
  ++impl_->sweeps;
  impl_->team.run([this](std::size_t member) { impl_->sweep(member); });
}

std::int64_t CacheFlusher::bytes() const { return static_cast<std::int64_t>(impl_->buffer.bytes()); }

#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O2")))  // the same chain in a debug build
#endif
double
speed_probe_ns() {
  constexpr int kTurns = 15'000;
  std::uint64_t value = 1;
  std::uint64_t addend = 3;
  asm volatile("" : "+r"(addend));
  const auto start = std::chrono::steady_clock::now();
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < 10; ++i) {
      value += addend;
      asm volatile("" : "+r"(value));  // each addition happens, after the one before
    }
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace kbh::cpu
