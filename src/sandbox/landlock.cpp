#include "sandbox/landlock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/error.hpp"

namespace kbh::sandbox::landlock {
namespace {

// Numbers of the kernel's stable interface. Not from <linux/landlock.h>: Debian 12's stops at ABI 2.
constexpr std::uint64_t bit(int n) { return std::uint64_t{1} << n; }
constexpr std::uint64_t kExecute = bit(0), kWriteFile = bit(1), kReadFile = bit(2), kReadDir = bit(3);
constexpr std::uint64_t kMakeChar = bit(6), kMakeSock = bit(9), kMakeBlock = bit(11);
constexpr std::uint64_t kRefer = bit(13), kTruncate = bit(14), kIoctlDev = bit(15);
constexpr std::uint64_t kFirstAbi = bit(13) - 1;
constexpr std::uint64_t kTcp = bit(0) | bit(1);     // bind, connect
constexpr std::uint64_t kScopes = bit(0) | bit(1);  // abstract unix sockets, signals
constexpr std::uint64_t kForFiles = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;
constexpr unsigned kGetVersion = 1;
constexpr int kPathBeneath = 1;

struct RulesetAttributes {  // the kernel accepts a longer struct than it knows when the rest is zero
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scoped = 0;
};

struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed;
  std::int32_t fd;
};

std::uint64_t known_file_rights() {
  std::uint64_t rights = kFirstAbi;
  if (abi() >= 2) rights |= kRefer;
  if (abi() >= 3) rights |= kTruncate;
  if (abi() >= 5) rights |= kIoctlDev;
  return rights;
}

UniqueFd create(std::uint64_t file_rights) {
  RulesetAttributes attributes{.files = file_rights};
  if (abi() >= 4) attributes.network = kTcp;
  if (abi() >= 6) attributes.scoped = kScopes;
  UniqueFd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0u)));
  if (!ruleset) fail_errno("cannot create a Landlock ruleset");
  return ruleset;
}

int add(int ruleset, int fd, std::uint64_t rights) {
  const PathBeneath rule{.allowed = rights, .fd = fd};
  return static_cast<int>(::syscall(SYS_landlock_add_rule, ruleset, kPathBeneath, &rule, 0u));
}

void allow(int ruleset, const std::vector<std::filesystem::path>& paths, std::uint64_t rights) {
  for (const auto& path : paths) {
    const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) continue;
    const std::uint64_t mask = S_ISDIR(status.st_mode) ? known_file_rights() : known_file_rights() & kForFiles;
    if (add(ruleset, fd.get(), rights & mask) != 0)
      fail_errno("cannot add " + path.string() + " to a Landlock ruleset");
  }
}

}  // namespace

int abi() {
  static const int version = [] {
    const long n = ::syscall(SYS_landlock_create_ruleset, nullptr, std::size_t{0}, kGetVersion);
    return n < 0 ? 0 : static_cast<int>(n);
  }();
  return version;
}

UniqueFd files(const std::vector<std::filesystem::path>& read_only, const std::vector<std::filesystem::path>& devices,
               const std::vector<std::filesystem::path>& writable) {
  UniqueFd ruleset = create(known_file_rights());
  allow(ruleset.get(), read_only, kReadFile | kReadDir | kExecute);
  allow(ruleset.get(), devices, kReadFile | kReadDir | kWriteFile | kTruncate | kIoctlDev);
  allow(ruleset.get(), writable, ~(kExecute | kMakeChar | kMakeBlock | kMakeSock));
  return ruleset;
}

UniqueFd isolation() { return create(kMakeChar | kMakeBlock); }  // a ruleset must handle something

int allow_own_proc(int ruleset) {
  const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (fd < 0) return errno == ENOENT ? 0 : -1;  // no /proc here
  const int result = add(ruleset, fd, kReadFile | kReadDir);
  ::close(fd);
  return result;
}

int restrict(int ruleset) { return static_cast<int>(::syscall(SYS_landlock_restrict_self, ruleset, 0u)); }

}  // namespace kbh::sandbox::landlock
