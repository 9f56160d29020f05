#include "device/cuda/ferry.hpp"

#include <algorithm>
#include <cstring>

#include "base/parallel.hpp"

namespace kbh::cuda {
namespace {

constexpr std::size_t kStop = std::size_t{32} << 20;
constexpr std::size_t kGrain = std::size_t{1} << 20;  // bytes that are worth a thread

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  parallel_for(bytes, kGrain,
               [&](std::size_t begin, std::size_t end) { std::memcpy(to + begin, from + begin, end - begin); });
}

}  // namespace

Ferry::Ferry() {
  for (Stop& stop : stops_) stop = {HostMemory(kStop), make_event()};
}

void Ferry::to_device(CUdeviceptr to, std::span<const std::byte> from, CUstream stream) {
  const Driver& d = driver();
  for (std::size_t begin = 0, turn = 0; begin < from.size(); begin += kStop, ++turn) {
    Stop& stop = stops_[turn % stops_.size()];
    const std::size_t bytes = std::min(kStop, from.size() - begin);
    check(d.synchronize_event(stop.idle.get()), "waiting for a copy to the device");
    copy(static_cast<std::byte*>(stop.memory.data()), from.data() + begin, bytes);
    check(d.copy_to_device(to + begin, stop.memory.data(), bytes, stream), "copying to the device");
    check(d.record_event(stop.idle.get(), stream), "copying to the device");
  }
}

void Ferry::to_host(std::span<std::byte> to, CUdeviceptr from, CUstream stream) {
  const Driver& d = driver();
  const auto bytes_of = [&](std::size_t piece) { return std::min(kStop, to.size() - piece * kStop); };
  const std::size_t pieces = (to.size() + kStop - 1) / kStop;
  // Piece i sets out before piece i - 1 is unloaded; its own stop was unloaded the turn before.
  for (std::size_t i = 0; i <= pieces; ++i) {
    if (i < pieces) {
      Stop& stop = stops_[i % stops_.size()];
      check(d.copy_to_host(stop.memory.data(), from + i * kStop, bytes_of(i), stream), "copying from the device");
      check(d.record_event(stop.idle.get(), stream), "copying from the device");
    }
    if (i == 0) continue;
    Stop& landed = stops_[(i - 1) % stops_.size()];
    check(d.synchronize_event(landed.idle.get()), "waiting for a copy from the device");
    copy(to.data() + (i - 1) * kStop, static_cast<const std::byte*>(landed.memory.data()), bytes_of(i - 1));
  }
}

}  // namespace kbh::cuda
