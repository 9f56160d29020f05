#include "device/cuda/lease.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kbh::cuda {

Lease::Lease(const std::string& uuid) {
  // One place for all users of the machine: a cache folder of each would hold nobody off.
  const std::string path = fmt::format("/tmp/kbh-lease-{}", uuid);
  // Opened first and made only then: in a folder for all, the kernel lets nobody "make" what another user made.
  fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd_) fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd_) fail_errno("cannot open " + path);
  ::fchmod(fd_.get(), 0666);  // the owner's umask may have closed it to others
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    char owner[200] = {};
    const ssize_t length = ::pread(fd_.get(), owner, sizeof owner - 1, 0);
    fail(ErrorKind::machine, "device {} is in use by {}: one grade at a time (or name another with --device)", uuid,
         length > 0 ? owner : "another process");
  }
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  const std::string owner = fmt::format("kbh, process {}, since {} (seconds since 1970)", ::getpid(), now.count());
  if (::ftruncate(fd_.get(), 0) != 0 || ::pwrite(fd_.get(), owner.data(), owner.size(), 0) < 0)
    fail_errno("cannot write " + path);
}

}  // namespace kbh::cuda
