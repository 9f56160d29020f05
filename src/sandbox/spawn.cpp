#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "sandbox/bubblewrap.hpp"
#include "sandbox/landlock.hpp"
#include "sandbox/launch.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/seccomp.hpp"
#include "sandbox/untested.hpp"

namespace kbh::sandbox {
namespace {

bool is_root() { return ::geteuid() == 0; }

bool may(unsigned capability) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2]{};
  return ::syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1u << capability)) != 0;
}

// A user that nobody has, another for each sandbox: limits on processes count per user, and no sandbox may signal
// another. In a container that maps few users, one near the end of what it maps. 0: none to be had, the sandbox runs as
// who we are.
uid_t spare_uid() {
  if (!is_root() || !may(CAP_SETUID) || !may(CAP_SETGID)) return 0;
  static std::atomic<unsigned> counter{0};
  const auto serial = static_cast<std::uint64_t>(::getpid()) * 64 + counter++ % 64;
  constexpr std::uint64_t kFirst = 990'000'000, kCount = 1'000'000'000;
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t end = 0;
  for (std::uint64_t inside = 0, outside = 0, count = 0; map >> inside >> outside >> count;)
    end = std::max(end, inside + count);
  if (end > kFirst + kCount) return static_cast<uid_t>(kFirst + serial % kCount);
  if (end < 8192) return 0;
  return static_cast<uid_t>(end - 4096 - serial % 4000);
}

// Links of /proc/PID/task: two and one per thread.
std::int64_t tasks_of_this_user() {
  std::int64_t tasks = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    struct stat status {};
    if (::stat((entry.path() / "task").c_str(), &status) == 0 && status.st_uid == ::getuid())
      tasks += static_cast<std::int64_t>(status.st_nlink) - 2;
  }
  return tasks;
}

std::vector<std::pair<int, rlimit>> limits_of(const Spec& spec, bool own_user) {
  std::vector<std::pair<int, rlimit>> limits;
  const auto lower = [&](__rlimit_resource resource, std::int64_t soft, std::int64_t slack = 0) {
    rlimit now{};
    ::getrlimit(resource, &now);
    const auto hard = std::min(static_cast<rlim_t>(soft + slack), now.rlim_max);
    limits.emplace_back(static_cast<int>(resource), rlimit{std::min(static_cast<rlim_t>(soft), hard), hard});
  };
  const Limits& wanted = spec.limits;
  lower(RLIMIT_CORE, 0);
  lower(RLIMIT_NOFILE, wanted.open_files);
  lower(RLIMIT_MEMLOCK, 8 << 20);
  lower(RLIMIT_MSGQUEUE, 0);
  lower(RLIMIT_RTPRIO, 0);
  lower(RLIMIT_NICE, 0);
  lower(RLIMIT_FSIZE, wanted.file_bytes);
  // SIGXCPU first, which tells the reason; SIGKILL for those that catch it.
  if (wanted.cpu_seconds > 0) lower(RLIMIT_CPU, static_cast<std::int64_t>(std::ceil(wanted.cpu_seconds)), 1);
#ifndef KBH_SANITIZED  // AddressSanitizer reserves terabytes of addresses
  if (wanted.memory_bytes > 0) lower(RLIMIT_AS, wanted.memory_bytes);
#endif
  // The kernel counts the tasks of a user, who may have others already. Two are bubblewrap's.
  lower(RLIMIT_NPROC, wanted.processes + 2 + (own_user ? 0 : tasks_of_this_user()));
  return limits;
}

UniqueFd raised(int fd, int at_least) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, at_least));
  if (!copy) fail_errno("cannot duplicate a descriptor");
  return copy;
}

UniqueFd memory_file(const void* bytes, std::size_t size, int at_least) {
  const UniqueFd fd(::memfd_create("kbh-launch", MFD_CLOEXEC));
  if (!fd || ::write(fd.get(), bytes, size) != static_cast<ssize_t>(size) || ::lseek(fd.get(), 0, SEEK_SET) != 0)
    fail_errno("cannot write a file in memory");
  return raised(fd.get(), at_least);
}

void arrange(Launch& launch, const Spec& spec) {
  for (const auto& entry : spec.fds) {
    expect(entry.second >= 3, "descriptors inside start at 3");
    launch.first_own = std::max(launch.first_own, entry.second + 1);
  }
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) fail_errno("cannot open /dev/null");
  const int output = spec.output < 0 ? nothing.get() : spec.output;
  launch.fds.emplace_back(raised(nothing.get(), launch.first_own), 0);
  launch.fds.emplace_back(raised(output, launch.first_own), 1);
  launch.fds.emplace_back(raised(output, launch.first_own), 2);
  for (const auto& [ours, inside] : spec.fds) launch.fds.emplace_back(raised(ours, launch.first_own), inside);
}

UniqueFd open_program(const fs::path& path, int at_least) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) fail_errno(fmt::format("cannot start {}", path.string()));
  return raised(fd.get(), at_least);
}

// Binds must be there; with a user of its own the sandbox must be let in.
void admit(const Spec& spec, bool own_user, bool walked_to) {
  const auto inspect = [&](const Bind& bind, bool writable) {
    struct stat status {};
    if (::stat(bind.host.c_str(), &status) != 0)
      fail_errno(fmt::format("cannot show {} to the sandbox", bind.host.string()));
    if (!own_user) return;
    if (const fs::path closed = walked_to ? first_closed_folder(bind.host) : fs::path(); !closed.empty())
      fail(ErrorKind::internal, "cannot show {} to the sandbox: its user may not enter {}; chmod o+x that folder",
           bind.host.string(), closed.string());
    const mode_t needed = S_ISDIR(status.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
    if (!writable && (status.st_mode & needed) != needed)
      fail(ErrorKind::internal, "cannot show {} to the sandbox: its user may not read it; chmod o+rX",
           bind.host.string());
  };
  for (const Bind& bind : spec.read_only) inspect(bind, false);
  for (const Bind& bind : spec.writable) inspect(bind, true);
}

void give_writable(const Spec& spec, uid_t uid) {
  for (const Bind& bind : spec.writable)
    if (::lchown(bind.host.c_str(), uid, uid) != 0)
      fail_errno(fmt::format("cannot give {} to the sandbox's user", bind.host.string()));
}

std::vector<fs::path> hosts_of(const Spec& spec) {
  std::vector<fs::path> hosts;
  for (const auto* binds : {&spec.read_only, &spec.writable})
    for (const Bind& bind : *binds) hosts.push_back(bind.host);
  return hosts;
}

Child spawn_full(const Spec& spec, Launch launch) {
  // The kernel lets its root write much below /proc, whatever the namespace (core_pattern, for one: tried).
  if (is_root() && launch.uid == 0) fail(ErrorKind::machine, "root may not become another user here");
  const bool staged = launch.uid != 0 && may(CAP_SYS_ADMIN);
  admit(spec, launch.uid != 0, !staged);
  auto sources = hosts_of(spec);
  if (staged) {
    for (fs::path& source : sources) {
      const std::string name = fmt::format("/tmp/{}", launch.reachable.size());
      launch.reachable.push_back({.source = source, .name = name, .folder = fs::is_directory(source)});
      source = name;
    }
  }
  const fs::path bwrap = bubblewrap::find();
  if (bwrap.empty()) fail(ErrorKind::machine, "bubblewrap (bwrap) not found");

  const auto& filter = seccomp::launch_program(spec.profile);
  const UniqueFd seccomp = memory_file(filter.data(), filter.size() * sizeof(sock_filter), launch.first_own);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot make a pipe");
  UniqueFd info(ends[0]);
  const UniqueFd info_in_low(ends[1]);
  const UniqueFd info_in = raised(info_in_low.get(), launch.first_own);
  std::string options;
  for (const std::string& option :
       bubblewrap::options(spec, sources, {.seccomp = seccomp.get(), .info = info_in.get()}))
    options.append(option.c_str(), option.size() + 1);
  // Options travel in a file: /proc/1/cmdline would show them to the program.
  const UniqueFd arguments = memory_file(options.data(), options.size(), launch.first_own);

  launch.kept = {seccomp.get(), info_in.get(), arguments.get()};
  launch.argv = {"bwrap", "--args", std::to_string(arguments.get()), "--"};
  launch.argv.insert(launch.argv.end(), spec.argv.begin(), spec.argv.end());
  launch.program = open_program(bwrap, launch.first_own);
  launch.path = bwrap;
  const pid_t pid = start(std::move(launch));
  return Child(pid, std::move(info));
}

Child spawn_reduced(const Spec& spec, Launch launch) {
  admit(spec, launch.uid != 0, true);
  auto readable = bubblewrap::system_paths();
  for (const char* path : {"/proc/cpuinfo", "/proc/meminfo", "/proc/stat"}) readable.emplace_back(path);
  std::vector<fs::path> writable;
  for (const Bind& bind : spec.read_only) readable.push_back(bind.host);
  for (const Bind& bind : spec.writable) writable.push_back(bind.host);
  std::vector<fs::path> devices = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
  devices.insert(devices.end(), spec.devices.begin(), spec.devices.end());
  const UniqueFd ruleset = landlock::files(readable, devices, writable);
  launch.landlock = raised(ruleset.get(), launch.first_own);
  launch.seccomp = &seccomp::launch_program(spec.profile);
  launch.argv = spec.argv;
  launch.environment = spec.environment;
  launch.directory = spec.directory;
  launch.program = open_program(spec.argv.at(0), launch.first_own);
  launch.path = spec.argv[0];
  return Child(start(std::move(launch)));
}

Child spawn_unconfined(const Spec& spec, Launch launch) {
  launch.argv = spec.argv;
  launch.environment = spec.environment;
  launch.directory = spec.directory;
  launch.program = open_program(spec.argv.at(0), launch.first_own);
  launch.path = spec.argv[0];
  return Child(start(std::move(launch)));
}

}  // namespace

fs::path first_closed_folder(const fs::path& path) {
  fs::path folder;
  for (const fs::path& part : fs::weakly_canonical(path).parent_path()) {
    folder /= part;
    struct stat status {};
    if (::stat(folder.c_str(), &status) == 0 && (status.st_mode & S_IXOTH) == 0) return folder;
  }
  return {};
}

Child spawn_untested(const Spec& spec) {
  expect(!spec.argv.empty(), "argv names a program");
  Launch launch;
  arrange(launch, spec);
  if (spec.level != Level::none) {
    launch.uid = spare_uid();
    launch.drop_capabilities = true;
  }
  if (launch.uid != 0) give_writable(spec, launch.uid);
  launch.limits = limits_of(spec, launch.uid != 0);
  if (spec.level == Level::full) return spawn_full(spec, std::move(launch));
  if (spec.level == Level::reduced) return spawn_reduced(spec, std::move(launch));
  return spawn_unconfined(spec, std::move(launch));
}

Child spawn(const Spec& spec) {
  if (!support().offers(spec.level))
    fail(ErrorKind::machine, "sandbox level {} is not available here: {}. {}", name_of(spec.level), support().why,
         support().missing);
  return spawn_untested(spec);
}

}  // namespace kbh::sandbox
