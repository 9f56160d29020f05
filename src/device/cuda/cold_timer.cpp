#include "device/cuda/cold_timer.hpp"

#include <atomic>
#include <chrono>
#include <vector>

#include "base/statistics.hpp"

namespace kbh::cuda {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A call that waits for the device while the gate is shut is let through after this long.
constexpr std::uint64_t kGateLimitNs = 200'000'000;

struct Flags {
  std::atomic<unsigned> open;
  unsigned gave_up;
  unsigned sink;
  unsigned unused;
  std::uint64_t clocks[2][2];  // before and after: nanoseconds, cycles
};

Flags& flags_in(const HostMemory& memory) { return *static_cast<Flags*>(memory.data()); }

}  // namespace

ColdTimer::ColdTimer(const DeviceInfo& device, std::int64_t sweep_bytes)
    : stream_(make_stream()),
      code_(load_device_code("timing")),
      gate_(kernel(code_, "kbh_gate")),
      clock_(kernel(code_, "kbh_clock")),
      write_sweep_(kernel(code_, "kbh_write_sweep")),
      read_sweep_(kernel(code_, "kbh_read_sweep")),
      empty_(kernel(code_, "kbh_empty")),
      multiprocessors_(device.multiprocessors),
      sweep_bytes_(sweep_bytes),
      swept_(allocate(static_cast<std::size_t>(sweep_bytes))),
      flags_(sizeof(Flags)),
      ready_(make_event()),
      begin_(make_event()),
      end_(make_event()) {
  // Every kernel is loaded before the first sample: a first launch may wait for the device.
  for (int i = 0; i < 2; ++i) time([](CUstream) {}, Flush::clean, 10);
}

void ColdTimer::sweep(Flush flush) {
  if (flush == Flush::none) return;
  check(driver().reset_persisting_l2(), "cannot reset persisting cache lines");
  CUdeviceptr data = swept_.get();
  auto count = static_cast<std::uint64_t>(sweep_bytes_) / 16;
  CUdeviceptr sink = flags_.on_device() + offsetof(Flags, sink);
  const Grid grid{static_cast<unsigned>(4 * multiprocessors_), 512};
  ++salt_;
  launch(write_sweep_, grid, stream_.get(), {&data, &count, &salt_});
  if (flush == Flush::clean) launch(read_sweep_, grid, stream_.get(), {&data, &count, &sink});
}

void ColdTimer::probe(int which) {
  CUdeviceptr to = flags_.on_device() + offsetof(Flags, clocks) + static_cast<std::size_t>(which) * 16;
  launch(clock_, {static_cast<unsigned>(multiprocessors_), 1}, stream_.get(), {&to});
}

Floors ColdTimer::floors() {
  constexpr int kSamples = 31;
  constexpr double kLimitSeconds = 10;
  std::vector<double> nothing;
  std::vector<double> empty;
  for (int i = 0; i < kSamples; ++i) {
    nothing.push_back(time([](CUstream) {}, Flush::clean, kLimitSeconds).event_us);
    empty.push_back(time(
                        [this](CUstream stream) {
                          launch(empty_, {1, 1}, stream, {});
                        },
                        Flush::clean, kLimitSeconds)
                        .event_us);
  }
  return {median(nothing), median(empty)};
}

bool ColdTimer::wait(CUstream stream, double limit_seconds, CUresult* status) {
  const auto begin = Clock::now();
  while ((*status = driver().query_stream(stream)) == CUDA_ERROR_NOT_READY)
    if (seconds_since(begin) > limit_seconds) return false;
  return true;
}

TimedCall ColdTimer::time(const std::function<void(CUstream)>& queue, Flush flush, double limit_seconds) {
  const Driver& d = driver();
  TimedCall result;
  Flags& flags = flags_in(flags_);
  flags.gave_up = 0;
  flags.open.store(0, std::memory_order_release);

  probe(0);
  sweep(flush);
  check(d.record_event(ready_.get(), stream_.get()), "cannot record an event");
  CUdeviceptr open = flags_.on_device();
  CUdeviceptr gave_up = flags_.on_device() + offsetof(Flags, gave_up);
  std::uint64_t limit_ns = kGateLimitNs;
  launch(gate_, {1, 1}, stream_.get(), {&open, &limit_ns, &gave_up});
  check(d.record_event(begin_.get(), stream_.get()), "cannot record an event");
  try {
    queue(stream_.get());
  } catch (...) {
    flags.open.store(1, std::memory_order_release);  // or whoever tidies up waits for the gate's limit
    throw;
  }
  check(d.record_event(end_.get(), stream_.get()), "cannot record an event");
  probe(1);

  // The host's clock begins when nothing but the gate holds the call back.
  if ((result.status = d.synchronize_event(ready_.get())) != CUDA_SUCCESS) return result;
  const auto opened = Clock::now();
  flags.open.store(1, std::memory_order_release);
  const bool ended = wait(stream_.get(), limit_seconds, &result.status);
  result.host_us = seconds_since(opened) * 1e6;
  result.timed_out = !ended;
  if (!ended || result.status != CUDA_SUCCESS) return result;

  result.gave_up = flags.gave_up != 0;
  float ms = 0;
  check(d.elapsed_ms(&ms, begin_.get(), end_.get()), "cannot read two events");
  result.event_us = static_cast<double>(ms) * 1e3;
  const auto& before = flags.clocks[0];
  const auto& after = flags.clocks[1];
  if (after[0] > before[0])
    result.clock_mhz = static_cast<double>(after[1] - before[1]) / static_cast<double>(after[0] - before[0]) * 1e3;
  return result;
}

}  // namespace kbh::cuda
