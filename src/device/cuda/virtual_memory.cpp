#include "device/cuda/virtual_memory.hpp"

#include <cstdint>

namespace kbh::cuda {
namespace {

CUmemAllocationProp properties(CUdevice device) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  p.location = {};
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = device;
  return p;
}

/// Sizes and addresses are multiples of this: 2 MiB.
std::size_t granularity(CUdevice device) {
  const CUmemAllocationProp p = properties(device);
  std::size_t bytes = 0;
  check(driver().granularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "cannot ask for the allocation granularity");
  return bytes;
}

}  // namespace

VirtualMemory VirtualMemory::create(CUdevice device, std::size_t bytes) {
  VirtualMemory memory;
  const std::size_t unit = granularity(device);
  memory.size_ = (bytes + unit - 1) / unit * unit;
  const CUmemAllocationProp p = properties(device);
  check(driver().create_memory(&memory.handle_, memory.size_, &p, 0), "cannot allocate device memory");
  memory.map(device, Access::read_write);
  return memory;
}

VirtualMemory VirtualMemory::import(CUdevice device, int fd, std::size_t size, Access access) {
  VirtualMemory memory;
  memory.size_ = size;
  // The descriptor travels as a pointer: cuda.h, CUmemAllocationHandleType.
  void* handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd));  // NOLINT(performance-no-int-to-ptr)
  check(driver().import_memory(&memory.handle_, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        "cannot import device memory");
  memory.map(device, access);
  return memory;
}

void VirtualMemory::map(CUdevice device, Access access) {
  device_ = device;
  const std::size_t guard = granularity(device);
  reserved_bytes_ = size_ + 2 * guard;
  check(driver().reserve_addresses(&reserved_, reserved_bytes_, 0, 0, 0), "cannot reserve device addresses");
  check(driver().map(reserved_ + guard, size_, 0, handle_, 0), "cannot map device memory");
  address_ = reserved_ + guard;
  allow(access);
}

void VirtualMemory::allow(Access access) {
  CUmemAccessDesc description{};
  description.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  description.location.id = device_;
  description.flags = access == Access::read_only ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check(driver().set_access(address_, size_, &description, 1), "cannot set the access of device memory");
}

UniqueFd VirtualMemory::export_fd() const {
  int fd = -1;
  check(driver().export_memory(&fd, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cannot export device memory");
  return UniqueFd(fd);
}

VirtualMemory::VirtualMemory(VirtualMemory&& other) noexcept { *this = std::move(other); }

VirtualMemory& VirtualMemory::operator=(VirtualMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(reserved_, other.reserved_);
  std::swap(reserved_bytes_, other.reserved_bytes_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

VirtualMemory::~VirtualMemory() {
  if (address_) driver().unmap(address_, size_);
  if (reserved_) driver().free_addresses(reserved_, reserved_bytes_);
  if (handle_) driver().release_memory(handle_);
}

}  // namespace kbh::cuda
