#include "device/cpu/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <utility>

#include "base/error.hpp"

namespace kbh::cpu {
namespace {

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

std::byte canary_byte(std::uint64_t salt, std::size_t position) {
  const std::uint64_t mixed = (salt ^ position) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::byte>(mixed >> 56);
}

/// Calls visit(position) for every slack byte until it returns false.
template <typename Visit>
bool for_each_slack(const Placement& p, Visit visit) {
  for (std::size_t i = p.page_offset; i < p.offset; ++i)
    if (!visit(i)) return false;
  for (std::size_t i = p.offset + p.bytes; i < p.page_offset + p.pages_bytes; ++i)
    if (!visit(i)) return false;
  return true;
}

}  // namespace

SharedArena::SharedArena(std::size_t bytes, Access access, const std::string& name) {
  size_ = round_up(std::max<std::size_t>(bytes, 1), kPage);
  fd_ = UniqueFd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd_) fail_errno("memfd_create");
  if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) fail_errno("cannot size shared memory");
  // Our own writable mapping comes first: F_SEAL_FUTURE_WRITE forbids every later one.
  void* mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.get(), 0);
  if (mapped == MAP_FAILED) fail_errno("cannot map shared memory");
  data_ = static_cast<std::byte*>(mapped);
  const int write_seal = access == Access::read_only ? F_SEAL_FUTURE_WRITE : 0;
  if (::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | write_seal) != 0)
    fail_errno("cannot seal shared memory");
}

SharedArena::SharedArena(SharedArena&& other) noexcept
    : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SharedArena& SharedArena::operator=(SharedArena&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedArena::~SharedArena() {
  if (data_) ::munmap(data_, size_);
}

Placement place(std::size_t bytes, bool at_end, std::size_t* cursor) {
  Placement p;
  p.page_offset = round_up(*cursor, kPage);
  p.pages_bytes = round_up(std::max<std::size_t>(bytes, 1), kPage);
  p.offset = at_end ? p.page_offset + p.pages_bytes - round_up(bytes, kAlignment) : p.page_offset;
  p.bytes = bytes;
  *cursor = p.page_offset + p.pages_bytes;
  return p;
}

void write_canary(std::byte* arena, const Placement& placement, std::uint64_t salt) {
  for_each_slack(placement, [&](std::size_t i) {
    arena[i] = canary_byte(salt, i);
    return true;
  });
}

bool canary_intact(const std::byte* arena, const Placement& placement, std::uint64_t salt) {
  return for_each_slack(placement, [&](std::size_t i) { return arena[i] == canary_byte(salt, i); });
}

}  // namespace kbh::cpu
