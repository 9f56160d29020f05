#include "device/cuda/matrix.hpp"

namespace kbh::cuda {

Multiplier::Multiplier()
    : stream_(make_stream()), code_(load_device_code("matrix")), multiply_(kernel(code_, "kbh_multiply")) {}

CUdeviceptr Multiplier::Buffer::at_least(std::size_t wanted) {
  if (wanted > bytes) {
    memory = {};
    memory = allocate(wanted);
    bytes = wanted;
  }
  return memory.get();
}

void Multiplier::operator()(std::int64_t m, std::int64_t n, std::int64_t k, std::span<const double> a,
                            std::span<const double> b, std::span<double> c) {
  constexpr std::int64_t kTile = 64;  // of kbh_multiply
  const Driver& d = driver();
  CUdeviceptr a_at = a_.at_least(a.size_bytes());
  CUdeviceptr b_at = b_.at_least(b.size_bytes());
  CUdeviceptr c_at = c_.at_least(c.size_bytes());
  check(d.copy_to_device(a_at, a.data(), a.size_bytes(), stream_.get()), "copying a matrix to the device");
  check(d.copy_to_device(b_at, b.data(), b.size_bytes(), stream_.get()), "copying a matrix to the device");
  launch(multiply_,
         {.blocks = static_cast<unsigned>((n + kTile - 1) / kTile),
          .threads = 256,
          .rows = static_cast<unsigned>((m + kTile - 1) / kTile)},
         stream_.get(), {&a_at, &b_at, &c_at, &m, &n, &k});
  check(d.copy_to_host(c.data(), c_at, c.size_bytes(), stream_.get()), "copying a matrix from the device");
  check(d.synchronize_stream(stream_.get()), "multiplying matrices");
}

}  // namespace kbh::cuda
