#include "sandbox/launch.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "sandbox/landlock.hpp"

namespace kbh::sandbox {
namespace {

struct Failure {
  char step[64];
  int error;
};

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

// The child's side. System calls only.
class Child {
 public:
  Child(Launch& launch, char* const* argv, char* const* environment, int report, pid_t parent)
      : launch_(launch), argv_(argv), environment_(environment), report_(report), parent_(parent) {}

  [[noreturn]] void become() {
    reset_signals();
    check("setsid", ::setsid());
    ::umask(022);
    make_reachable();
    arrange_descriptors();
    prefer_as_victim();
    check("chdir to the working directory", ::chdir(launch_.directory.c_str()));
    for (const auto& [resource, limit] : launch_.limits) check("setrlimit", ::setrlimit(resource_of(resource), &limit));
    change_user();
    drop_capabilities();
    die_with_parent();
    restrict();
    // By descriptor: the sandbox's user may not be able to walk to the program.
    ::syscall(SYS_execveat, launch_.program.get(), "", argv_, environment_, AT_EMPTY_PATH);
    if (errno == ENOENT || errno == ENOSYS) ::execve(launch_.path.c_str(), argv_, environment_);
    fail("start the program");
  }

 private:
  static __rlimit_resource resource_of(int n) { return static_cast<__rlimit_resource>(n); }

  [[noreturn]] void fail(const char* step) const {
    Failure failure{.step = {}, .error = errno};
    for (std::size_t i = 0; i + 1 < sizeof failure.step && step[i]; ++i) failure.step[i] = step[i];
    [[maybe_unused]] const ssize_t n = ::write(report_, &failure, sizeof failure);
    ::_exit(127);
  }
  void check(const char* step, long result) const {
    if (result < 0) fail(step);
  }

  // Ignored signals and the blocked set would outlive exec.
  static void reset_signals() {
    struct sigaction initial {};
    initial.sa_handler = SIG_DFL;
    for (int n = 1; n < NSIG; ++n) ::sigaction(n, &initial, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  // In a mount namespace of our own, every source appears in a folder that anybody may enter. Sources are opened after
  // unshare: the kernel binds only what belongs to the present namespace; and before /tmp is covered.
  void make_reachable() {
    if (launch_.reachable.empty()) return;
    check("unshare mounts", ::unshare(CLONE_NEWNS));
    check("make mounts private", ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
    for (Reachable& r : launch_.reachable) {
      r.fd = ::open(r.source.c_str(), O_PATH | O_CLOEXEC);
      check("open a bound path", r.fd);
    }
    check("mount", ::mount("kbh", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m"));
    for (const Reachable& r : launch_.reachable) {
      if (r.folder) {
        check("mkdir", ::mkdir(r.name.c_str(), 0755));
      } else {
        const int fd = ::open(r.name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        check("create", fd);
        ::close(fd);
      }
      char source[32] = "/proc/self/fd/";
      append_number(source, r.fd);
      check("bind", ::mount(source, r.name.c_str(), nullptr, MS_BIND | MS_REC, nullptr));
      ::close(r.fd);
    }
  }

  static void append_number(char* text, int n) {
    char digits[12];
    int count = 0;
    do digits[count++] = static_cast<char>('0' + n % 10);
    while ((n /= 10) > 0);
    char* end = text + std::strlen(text);
    while (count > 0) *end++ = digits[--count];
    *end = 0;
  }

  // Ours all lie at first_own and above, so no dup2 runs over one that is still needed.
  void arrange_descriptors() const {
    for (const auto& [ours, number] : launch_.fds) check("dup2", ::dup2(ours.get(), number));
    for (int fd = 3; fd < launch_.first_own; ++fd)
      if (!is_target(fd)) ::close(fd);
    check("close_range",
          ::syscall(SYS_close_range, static_cast<unsigned>(launch_.first_own), ~0u, CLOSE_RANGE_CLOEXEC));
    for (const int fd : launch_.kept) check("keep a descriptor", ::fcntl(fd, F_SETFD, 0));
  }
  [[nodiscard]] bool is_target(int fd) const {
    return std::any_of(launch_.fds.begin(), launch_.fds.end(), [fd](const auto& entry) { return entry.second == fd; });
  }

  // When memory runs out, the submission goes first. Best effort: a container may lack the file.
  static void prefer_as_victim() {
    const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    [[maybe_unused]] const ssize_t n = ::write(fd, "1000", 4);
    ::close(fd);
  }

  // The kernel's own calls: the C library's versions signal all threads of the process.
  void change_user() const {
    const uid_t id = launch_.uid;
    if (id == 0) return;
    check("setgroups", ::syscall(SYS_setgroups, std::size_t{0}, nullptr));
    check("setresgid", ::syscall(SYS_setresgid, id, id, id));
    check("setresuid", ::syscall(SYS_setresuid, id, id, id));
  }

  // The change of user drops them; but we may be a root that stays root, or a user who was given some. What the
  // bounding set holds, root would get back at exec.
  void drop_capabilities() const {
    if (!launch_.drop_capabilities) return;
    const auto is_bounding = [](unsigned long n) { return ::prctl(PR_CAPBSET_READ, n, 0, 0, 0); };
    for (unsigned long n = 0; is_bounding(n) >= 0; ++n)
      if (::prctl(PR_CAPBSET_DROP, n, 0, 0, 0) != 0 && ::geteuid() == 0 && is_bounding(n) == 1)
        fail("drop root's capabilities");
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    const __user_cap_data_struct none[2]{};
    check("capset", ::syscall(SYS_capset, &header, none));
  }

  // After the change of user, which clears it.
  void die_with_parent() const {
    check("PR_SET_NO_NEW_PRIVS", ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    check("PR_SET_PDEATHSIG", ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
    if (::getppid() != parent_) ::_exit(127);  // it died before we asked
  }

  void restrict() const {
    if (launch_.landlock) {
      check("Landlock rule for /proc/self", landlock::allow_own_proc(launch_.landlock.get()));
      check("Landlock", landlock::restrict(launch_.landlock.get()));
    }
    if (!launch_.seccomp) return;
    const sock_fprog program{.len = static_cast<unsigned short>(launch_.seccomp->size()),
                             // the kernel only reads it
                             .filter = const_cast<sock_filter*>(launch_.seccomp->data())};  // NOLINT(*-const-cast)
    check("seccomp", ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
  }

  Launch& launch_;
  char* const* argv_;
  char* const* environment_;
  int report_;
  pid_t parent_;
};

}  // namespace

pid_t start(Launch launch) {
  const auto argv = pointers(launch.argv);
  const auto environment = pointers(launch.environment);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot make a pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  UniqueFd report(::fcntl(write_end.get(), F_DUPFD_CLOEXEC, launch.first_own));
  if (!report) fail_errno("cannot duplicate a descriptor");
  write_end.reset();

  Child child(launch, argv.data(), environment.data(), report.get(), ::getpid());
  const pid_t pid = ::fork();
  if (pid < 0) fail_errno("cannot start a process");
  if (pid == 0) child.become();
  report.reset();

  Failure failure{};
  ssize_t n = 0;
  do n = ::read(read_end.get(), &failure, sizeof failure);
  while (n < 0 && errno == EINTR);
  if (n == 0) return pid;  // closed by exec
  ::waitpid(pid, nullptr, 0);
  fail(ErrorKind::machine, "cannot start {} in the sandbox: {}: {}", launch.path, failure.step,
       std::strerror(failure.error));
}

}  // namespace kbh::sandbox
