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
  CUdeviceptr a_at = a_.at_least(a.size_bytes());
  CUdeviceptr b_at = b_.at_least(b.size_bytes());
  CUdeviceptr c_at = c_.at_least(c.size_bytes());
  ferry_.to_device(a_at, std::as_bytes(a), stream_.get());
  ferry_.to_device(b_at, std::as_bytes(b), stream_.get());
  launch(multiply_,
         {.blocks = static_cast<unsigned>((n + kTile - 1) / kTile),
          .threads = 256,
          .rows = static_cast<unsigned>((m + kTile - 1) / kTile)},
         stream_.get(), {&a_at, &b_at, &c_at, &m, &n, &k});
  ferry_.to_host(std::as_writable_bytes(c), c_at, stream_.get());
}

}  // namespace kbh::cuda
