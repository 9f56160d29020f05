#include "sandbox/seccomp.hpp"

#include <asm/termbits.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/error.hpp"

namespace kbh::sandbox::seccomp {
namespace {

using Names = std::span<const char* const>;

// Everything that C and C++ programs, threads and OpenMP need, and nothing that reaches beyond the process, its open
// files, and what the file-system part of the sandbox shows.
constexpr const char* kAlways[] = {
    // files
    "access", "chdir", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3", "faccessat",
    "faccessat2", "fadvise64", "fallocate", "fchdir", "fdatasync", "flock", "fstat", "fstatfs", "fsync", "ftruncate",
    "getcwd", "getdents", "getdents64", "lseek", "lstat", "mkdir", "mkdirat", "newfstatat", "open", "openat", "openat2",
    "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink",
    "readlinkat", "readv", "rename", "renameat", "renameat2", "rmdir", "sendfile", "stat", "statfs", "statx", "umask",
    "unlink", "unlinkat", "write", "writev",
    // memory
    "brk", "get_mempolicy", "madvise", "mbind", "membarrier", "mincore", "mlock", "mlock2", "mmap", "mprotect",
    "mremap", "msync", "munlock", "munlockall", "munmap", "set_mempolicy",
    // threads and time
    "alarm", "arch_prctl", "clock_getres", "clock_gettime", "clock_nanosleep", "exit", "exit_group", "futex",
    "futex_waitv", "get_robust_list", "getcpu", "getitimer", "gettid", "gettimeofday", "nanosleep", "pause",
    "restart_syscall", "rseq", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
    "sched_getparam", "sched_getscheduler", "sched_setaffinity", "sched_yield", "set_robust_list", "set_tid_address",
    "setitimer", "time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime",
    "timerfd_create", "timerfd_gettime", "timerfd_settime", "times",
    // own signals
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
    "sigaltstack",
    // waiting, and messages over sockets that are already open
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2",
    "getpeername", "getsockname", "getsockopt", "poll", "ppoll", "pselect6", "recvfrom", "recvmsg", "select", "sendmsg",
    "sendto", "shutdown",
    // questions about oneself
    "capget", "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp", "getpid", "getppid", "getpriority",
    "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "getuid", "sysinfo", "uname"};

// What a program needs until it restricts itself: the exec that starts it, and the calls that restrict. wait4 is for
// bubblewrap's init, which runs under the same filter.
constexpr const char* kUntilRestricted[] = {"execve",
                                            "execveat",
                                            "landlock_create_ruleset",
                                            "landlock_restrict_self",
                                            "prlimit64",
                                            "seccomp",
                                            "setrlimit",
                                            "setsockopt",
                                            "tgkill",
                                            "wait4"};

constexpr const char* kStartPrograms[] = {"chmod", "execve",    "execveat", "fchmod",    "fchmodat", "fork",
                                          "link",  "linkat",    "symlink",  "symlinkat", "tgkill",   "truncate",
                                          "utime", "utimensat", "utimes",   "vfork",     "wait4",    "waitid"};

// What NVIDIA's driver library needs beside that: it speaks to the device through ioctl, and does not start without a
// socket (seen with driver 580).
constexpr const char* kDriver[] = {"ioctl", "memfd_create", "socket", "socketpair",
                                   "bind",  "connect",      "listen", "accept4"};

// What ioctl, fcntl and prctl may be asked for.
constexpr unsigned long kDeviceQuestions[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIOCLEX, FIONCLEX, FIONBIO};
// Not F_SETOWN and F_SETSIG: together they make the kernel send any signal to any process of the user.
constexpr int kFileQuestions[] = {F_DUPFD,     F_DUPFD_CLOEXEC, F_GETFD,     F_SETFD,      F_GETFL,
                                  F_SETFL,     F_GETLK,         F_SETLK,     F_SETLKW,     F_OFD_GETLK,
                                  F_OFD_SETLK, F_OFD_SETLKW,    F_GET_SEALS, F_GETPIPE_SZ, F_SETPIPE_SZ};
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
constexpr int kOwnAttributes[] = {PR_SET_NAME,       PR_GET_NAME,       PR_SET_VMA,          PR_GET_DUMPABLE,
                                  PR_GET_PDEATHSIG,  PR_GET_SECCOMP,    PR_GET_NO_NEW_PRIVS, PR_CAPBSET_READ,
                                  PR_GET_TIMERSLACK, PR_SET_TIMERSLACK, PR_GET_THP_DISABLE,  PR_SET_THP_DISABLE};
constexpr int kRestrictions[] = {PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP};

// CLONE_PARENT would hand us children that we never started.
constexpr unsigned long kNeverClone = CLONE_PARENT | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

// Linux gives out numbers in order; libseccomp 2.5.4 knows them up to 449, Linux 6.18 has 470.
constexpr int kLastNumber = 512;

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), &seccomp_release) {
    expect(context_ != nullptr, "libseccomp gives no context");
    set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));  // 32-bit and x32 entry points
    set(SCMP_FLTATR_CTL_OPTIMIZE, 2);                      // a binary tree
    refuse_as_unknown("clone3");                           // its flags lie in memory, where no filter can see them
    for (int number = 0; number < kLastNumber; ++number) {
      const std::unique_ptr<char, decltype(&std::free)> name(seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number),
                                                             &std::free);
      if (!name) check(seccomp_rule_add(get(), SCMP_ACT_ERRNO(ENOSYS), number, 0));
    }
  }

  void allow(Names names) {
    for (const char* name : names) allow(name);
  }

  /// Calls that this architecture or this libseccomp does not know are passed over.
  template <typename... Condition>
  void allow(const char* name, Condition... condition) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) check(seccomp_rule_add(get(), SCMP_ACT_ALLOW, number, sizeof...(condition), condition...));
  }

  template <typename T>
  void allow_values(const char* name, unsigned argument, std::span<const T> values) {
    for (const T value : values) allow(name, scmp_arg_cmp{argument, SCMP_CMP_EQ, static_cast<scmp_datum_t>(value), 0});
  }

  void set(scmp_filter_attr attribute, std::uint32_t value) { check(seccomp_attr_set(get(), attribute, value)); }
  [[nodiscard]] scmp_filter_ctx get() const { return context_.get(); }

 private:
  static void check(int result) { expect(result == 0 || result == -EEXIST, "libseccomp refuses a rule"); }
  void refuse_as_unknown(const char* name) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) check(seccomp_rule_add(get(), SCMP_ACT_ERRNO(ENOSYS), number, 0));
  }

  std::unique_ptr<void, decltype(&seccomp_release)> context_;
};

Filter base(Profile profile) {
  Filter filter;
  filter.allow(kAlways);
  if (profile == Profile::device)
    filter.allow(kDriver);
  else
    filter.allow_values<unsigned long>("ioctl", 1, kDeviceQuestions);
  filter.allow_values<int>("fcntl", 1, kFileQuestions);
  filter.allow_values<int>("prctl", 0, kOwnAttributes);
  filter.allow("prlimit64", scmp_arg_cmp{2, SCMP_CMP_EQ, 0, 0});  // reading
  if (profile == Profile::compiler) {
    filter.allow(kStartPrograms);
    filter.allow("clone", scmp_arg_cmp{0, SCMP_CMP_MASKED_EQ, kNeverClone, 0});
  } else {
    filter.allow("clone", scmp_arg_cmp{0, SCMP_CMP_MASKED_EQ, kNeverClone | CLONE_THREAD, CLONE_THREAD});
  }
  return filter;
}

std::vector<sock_filter> compiled(const Filter& filter) {
  int ends[2];  // 64 KiB fit into a pipe, the largest filter that Linux accepts has half of it
  expect(::pipe2(ends, O_CLOEXEC) == 0, "no pipe");
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  expect(seccomp_export_bpf(filter.get(), in.get()) == 0, "libseccomp cannot write the filter");
  in.reset();
  std::vector<sock_filter> program(BPF_MAXINSNS);
  const ssize_t bytes = ::read(out.get(), program.data(), program.size() * sizeof(sock_filter));
  expect(bytes > 0, "empty filter");
  program.resize(static_cast<std::size_t>(bytes) / sizeof(sock_filter));
  return program;
}

std::vector<sock_filter> compile_launch(Profile profile) {
  Filter filter = base(profile);
  filter.allow(kUntilRestricted);
  filter.allow_values<int>("prctl", 0, kRestrictions);
  return compiled(filter);
}

}  // namespace

// About 4 ms each, once.
const std::vector<sock_filter>& launch_program(Profile profile) {
  if (profile == Profile::compiler) {
    static const auto compiler = compile_launch(Profile::compiler);
    return compiler;
  }
  if (profile == Profile::device) {
    static const auto device = compile_launch(Profile::device);
    return device;
  }
  static const auto worker = compile_launch(Profile::worker);
  return worker;
}

void load(Profile profile) {
  Filter filter = base(profile);
  if (profile != Profile::compiler) {  // abort() and pthread_kill() stay possible
    const auto self = scmp_arg_cmp{0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid()), 0};
    filter.allow("tgkill", self);
    filter.allow("kill", self);
  }
  filter.set(SCMP_FLTATR_CTL_TSYNC, 1);
  expect(seccomp_load(filter.get()) == 0, "the kernel refuses the seccomp filter");
}

}  // namespace kbh::sandbox::seccomp
