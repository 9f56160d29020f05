// Device memory that two processes share: physical pieces with addresses of each process's own.
#pragma once

#include <cstddef>

#include "base/fd.hpp"
#include "device/cuda/driver.hpp"

namespace kbh::cuda {

enum class Access { read_only, read_write };

/// One piece, mapped between unmapped addresses: what strays beyond it faults.
class VirtualMemory {
 public:
  VirtualMemory() = default;
  /// New memory of at least `bytes`, writable. Its content is undefined.
  static VirtualMemory create(CUdevice device, std::size_t bytes);
  /// What another process exported; `size` as the other's size().
  static VirtualMemory import(CUdevice device, int fd, std::size_t size, Access access);
  VirtualMemory(VirtualMemory&& other) noexcept;
  VirtualMemory& operator=(VirtualMemory&& other) noexcept;
  ~VirtualMemory();

  [[nodiscard]] CUdeviceptr address() const { return address_; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Changes what kernels of this process may do; all work on it must have ended.
  void allow(Access access);

  [[nodiscard]] UniqueFd export_fd() const;

 private:
  void map(CUdevice device, Access access);

  CUdevice device_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr reserved_ = 0;
  std::size_t reserved_bytes_ = 0;
  CUdeviceptr address_ = 0;
  std::size_t size_ = 0;
};

}  // namespace kbh::cuda
