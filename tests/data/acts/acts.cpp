// A submission that tries what no submission may do, one act after the other, and prints a line for each:
//
//     ACT <name> denied <errno name>       ACT <name> ALLOWED <detail>       ACT <name> skipped <reason>
//
// Every act is harmless where it is allowed: signal 0, the present host name, a loopback port that nobody serves, files
// that are removed again, bounded numbers of everything. Where an act cannot be done harmlessly, a call with an
// argument that the kernel rejects *after* its permission check stands for it (`reached`).
//
// Files that must be unreadable are listed in $KBH_ACT_PATHS (colon-separated), or in acts_paths.h beside this file as
// #define KBH_ACT_PATHS "/one:/two".
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <kbh/host.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#if __has_include("acts_paths.h")
#include "acts_paths.h"
#endif

namespace {

const kbh_tensor* g_input = nullptr;

// --- What came of an act ---------------------------------------------------------------------------------------------

struct Outcome {
  int error = 0;            // 0: allowed
  std::string detail = "";  // of an allowed act
  bool skipped = false;
};

Outcome allowed(std::string detail) { return {.error = 0, .detail = std::move(detail)}; }
Outcome denied(int error) { return {.error = error}; }
Outcome skipped(std::string reason) { return {.error = 0, .detail = std::move(reason), .skipped = true}; }

Outcome outcome(long result, const char* detail = "done") { return result < 0 ? denied(errno) : allowed(detail); }

/// The kernel's own complaint about a harmless argument shows that the call passed.
Outcome reached(long result, int complaint) {
  if (result < 0 && errno == complaint) return allowed("the call reached the kernel");
  return outcome(result);
}

Outcome opened(int fd, const std::string& what) {
  if (fd < 0) return denied(errno);
  close(fd);
  return allowed("opened " + what);
}

Outcome open_for(const std::string& path, int flags) { return opened(open(path.c_str(), flags | O_CLOEXEC), path); }

Outcome create(const std::string& path) {
  const Outcome result = opened(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600), path);
  if (result.error == 0) unlink(path.c_str());
  return result;
}

/// In a thread, because what it changes ends with the thread.
template <typename Act>
Outcome in_a_thread(Act act) {
  Outcome result;
  std::thread([&] { result = act(); }).join();
  return result;
}

std::string proc(pid_t pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

// --- Files -----------------------------------------------------------------------------------------------------------

Outcome read_given_paths() {
  const char* list = getenv("KBH_ACT_PATHS");
#ifdef KBH_ACT_PATHS
  if (!list) list = KBH_ACT_PATHS;
#endif
  if (!list || !*list) return skipped("no paths given");
  std::string rest = list;
  Outcome last;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    last = open_for(rest.substr(0, end), O_RDONLY);
    if (last.error == 0) return last;
    rest.erase(0, end + 1);
  }
  return last;
}

Outcome read_shadow() { return open_for("/etc/shadow", O_RDONLY); }

Outcome list_homes() {
  for (const char* home : {"/root", "/home"}) {
    DIR* folder = opendir(home);
    if (!folder) continue;
    closedir(folder);
    return allowed(std::string("listed ") + home);
  }
  return denied(errno);
}

Outcome write_root() { return create("/kbh-act"); }
Outcome write_usr() { return create("/usr/kbh-act"); }
Outcome write_etc() { return create("/etc/kbh-act"); }
Outcome write_dev() { return create("/dev/kbh-act"); }
Outcome write_dev_shm() { return create("/dev/shm/kbh-act"); }
Outcome write_sysctl() { return open_for("/proc/sys/kernel/core_pattern", O_WRONLY); }

std::string own_object() {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(&kbh_run), &info) && info.dli_fname ? info.dli_fname : "/proc/self/exe";
}
Outcome write_own_object() { return open_for(own_object(), O_WRONLY); }
Outcome chmod_own_object() {
  struct stat status {};
  if (stat(own_object().c_str(), &status) != 0) return denied(errno);
  return outcome(chmod(own_object().c_str(), status.st_mode & 07777));
}
Outcome chroot_here() { return outcome(chroot("/")); }

// 256 MiB, in files small enough for the limit on one file.
Outcome fill_disk() {
  const std::vector<char> block(1 << 20, 'x');
  std::vector<std::string> files;
  long mebibytes = 0;
  int error = 0;
  for (int f = 0; f < 8 && error == 0; ++f) {
    files.push_back("/tmp/kbh-act-" + std::to_string(f));
    const int fd = open(files.back().c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    for (int i = 0; i < 32 && error == 0; ++i) {
      const ssize_t n = fd < 0 ? -1 : write(fd, block.data(), block.size());
      if (n != static_cast<ssize_t>(block.size()))
        error = n < 0 ? errno : ENOSPC;
      else
        ++mebibytes;
    }
    if (fd >= 0) close(fd);
  }
  for (const std::string& file : files) unlink(file.c_str());
  return error ? denied(error) : allowed("wrote " + std::to_string(mebibytes) + " MiB");
}

Outcome open_by_handle() {
  alignas(file_handle) char space[sizeof(file_handle) + MAX_HANDLE_SZ]{};
  auto* handle = reinterpret_cast<file_handle*>(space);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (name_to_handle_at(AT_FDCWD, "/", handle, &mount, 0) != 0) return denied(errno);
  const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int fd = open_by_handle_at(root, handle, O_RDONLY | O_CLOEXEC);
  const int error = errno;
  if (root >= 0) close(root);
  errno = error;
  return opened(fd, "the root by handle");
}

// --- The grader's memory ---------------------------------------------------------------------------------------------

void* page_of_input() {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(g_input->data) / page * page);
}

Outcome unprotect_input() {
  if (!g_input) return skipped("no input");
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const Outcome result = outcome(mprotect(page_of_input(), page, PROT_READ | PROT_WRITE));
  if (result.error == 0) mprotect(page_of_input(), page, PROT_READ);
  return result;
}

Outcome write_input_through_proc() {
  if (!g_input) return skipped("no input");
  const int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (fd < 0) return denied(errno);
  const auto place = static_cast<off_t>(reinterpret_cast<uintptr_t>(g_input->data));
  const ssize_t n = pwrite(fd, g_input->data, 1, place);  // its own value
  const int error = errno;
  close(fd);
  return n == 1 ? allowed("wrote a read-only page") : denied(error);
}

template <typename Try>
Outcome on_each_shared_file(Try attempt) {
  Outcome last = denied(ENOENT);  // none is left open: as good
  for (int fd = 3; fd < 1024; ++fd) {
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    char target[256]{};
    if (readlink(link.c_str(), target, sizeof target - 1) < 0 || !strstr(target, "memfd:")) continue;
    last = attempt(fd, link);
    if (last.error == 0) return last;
  }
  return last;
}

Outcome grow_shared_memory() {
  return on_each_shared_file([](int fd, const std::string& link) {
    struct stat status {};
    fstat(fd, &status);
    if (ftruncate(fd, status.st_size + 4096) != 0) {
      const int again = open(link.c_str(), O_RDWR | O_CLOEXEC);
      if (again < 0) return denied(errno);
      const int result = ftruncate(again, status.st_size + 4096);
      const int error = errno;
      close(again);
      if (result != 0) return denied(error);
    }
    const int back = ftruncate(fd, status.st_size);
    return allowed(back == 0 ? "resized it and back" : "resized it");
  });
}

Outcome map_shared_memory_writable() {
  return on_each_shared_file([](int, const std::string& link) {
    const int fd = open(link.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return denied(errno);
    void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int error = errno;
    close(fd);
    if (memory == MAP_FAILED) return denied(error);
    munmap(memory, 4096);
    return allowed("mapped it writable");
  });
}

Outcome open_map_files() {
  DIR* folder = opendir("/proc/self/map_files");
  if (!folder) return denied(errno);
  Outcome last = denied(ENOENT);
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    last = open_for(std::string("/proc/self/map_files/") + entry->d_name, O_RDONLY);
    break;
  }
  closedir(folder);
  return last;
}

Outcome make_memory_file() { return opened(memfd_create("kbh-act", MFD_CLOEXEC), "a memfd"); }

Outcome make_sysv_memory() {
  const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  if (id < 0) return denied(errno);
  shmctl(id, IPC_RMID, nullptr);
  return allowed("made a segment");
}

Outcome make_message_queue() {
  const mqd_t queue = mq_open("/kbh-act", O_CREAT | O_RDWR, 0600, nullptr);
  if (queue < 0) return denied(errno);
  mq_close(queue);
  mq_unlink("/kbh-act");
  return allowed("made a queue");
}

// --- Network ---------------------------------------------------------------------------------------------------------

Outcome connect_tcp() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return denied(errno);
  sockaddr_in discard{};
  discard.sin_family = AF_INET;
  discard.sin_port = htons(9);
  discard.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Outcome result = reached(connect(fd, reinterpret_cast<sockaddr*>(&discard), sizeof discard), ECONNREFUSED);
  close(fd);
  return result;
}

Outcome open_udp() { return opened(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "a UDP socket"); }
Outcome open_netlink() { return opened(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0), "a netlink socket"); }

Outcome bind_abstract_socket() {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return denied(errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, "\0kbh-act", 8);
  const Outcome result = outcome(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t) + 8), "bound it");
  close(fd);
  return result;
}

Outcome make_socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return denied(errno);
  close(ends[0]);
  close(ends[1]);
  return allowed("made a pair");
}

// --- Other processes -------------------------------------------------------------------------------------------------

// The thread that traces lets go when it ends.
Outcome ptrace_parent() {
  return in_a_thread([] { return outcome(ptrace(PTRACE_SEIZE, getppid(), nullptr, nullptr), "traced it"); });
}

Outcome read_parent_memory() {
  char byte = 0;
  iovec here{&byte, 1};
  iovec there{&byte, 1};  // an address of ours: there it may be nothing
  return reached(process_vm_readv(getppid(), &here, 1, &there, 1, 0), EFAULT);
}

Outcome write_parent_memory() {
  char byte = 0;
  iovec here{&byte, 1};
  iovec nowhere{nullptr, 1};
  return reached(process_vm_writev(getppid(), &here, 1, &nowhere, 1, 0), EFAULT);
}

Outcome open_parent_memory() { return open_for(proc(getppid(), "mem"), O_RDONLY); }
Outcome open_parent_environment() { return open_for(proc(getppid(), "environ"), O_RDONLY); }
Outcome open_parent_maps() { return open_for(proc(getppid(), "maps"), O_RDONLY); }
Outcome open_parent_descriptor() { return open_for(proc(getppid(), "fd/0"), O_RDONLY); }
Outcome open_init_environment() { return open_for("/proc/1/environ", O_RDONLY); }
Outcome open_parent_handle() {
  return opened(static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0)), "a handle of the parent");
}

Outcome kill_parent() { return outcome(kill(getppid(), 0), "signal 0"); }
Outcome kill_everybody() { return outcome(kill(-1, 0), "signal 0"); }
Outcome kill_own_group() { return outcome(kill(0, 0), "signal 0"); }
Outcome kill_thread_of_parent() { return outcome(syscall(SYS_tgkill, getppid(), getppid(), 0), "signal 0"); }
Outcome queue_signal_to_parent() {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  return outcome(syscall(SYS_rt_sigqueueinfo, getppid(), 0, &info), "signal 0");
}

Outcome signal_through_file() {  // the owner of a file gets its SIGIO, or the signal that F_SETSIG names
  int ends[2];
  if (pipe(ends) != 0) return denied(errno);
  const Outcome result = outcome(fcntl(ends[0], F_SETOWN, getppid()), "made the parent the owner of a pipe");
  close(ends[0]);
  close(ends[1]);
  return result;
}

// --- More processes, longer life -------------------------------------------------------------------------------------

Outcome started(pid_t pid) {
  if (pid < 0) return denied(errno);
  waitpid(pid, nullptr, 0);
  return allowed("a child ran");
}

Outcome fork_once() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  return started(pid);
}

Outcome clone3_once() {
  struct {
    uint64_t flags = 0, pidfd = 0, child_tid = 0, parent_tid = 0, exit_signal = SIGCHLD, stack = 0, stack_size = 0,
             tls = 0;
  } arguments;
  const long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) _exit(0);
  return started(static_cast<pid_t>(pid));
}

Outcome fork_bomb() {
  std::vector<pid_t> children;
  int error = 0;
  while (children.size() < 300 && error == 0) {
    const pid_t pid = fork();
    if (pid == 0) {
      pause();
      _exit(0);
    }
    if (pid < 0)
      error = errno;
    else
      children.push_back(pid);
  }
  for (const pid_t child : children) kill(child, SIGKILL);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  return error ? denied(error) : allowed(std::to_string(children.size()) + " processes");
}

Outcome thread_bomb() {
  static int gate[2];  // threads wait here until it closes
  if (pipe(gate) != 0) return denied(errno);
  const auto wait_at_gate = [](void*) -> void* {
    char byte;
    [[maybe_unused]] const ssize_t n = read(gate[0], &byte, 1);
    return nullptr;
  };
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  std::vector<pthread_t> threads;
  int error = 0;
  while (threads.size() < 1024 && error == 0) {
    pthread_t thread;
    error = pthread_create(&thread, &small, wait_at_gate, nullptr);
    if (error == 0) threads.push_back(thread);
  }
  close(gate[1]);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  close(gate[0]);
  pthread_attr_destroy(&small);
  return error ? denied(error) : allowed(std::to_string(threads.size()) + " threads");
}

Outcome execute() {
  char* const nothing[] = {nullptr};
  return reached(execve("/nonexistent/kbh-act", nothing, nothing), ENOENT);
}
Outcome execute_at() {
  char* const nothing[] = {nullptr};
  return reached(syscall(SYS_execveat, AT_FDCWD, "/nonexistent/kbh-act", nothing, nothing, 0), ENOENT);
}
Outcome run_shell() {
  const int status = system("exit 7");
  return status < 0 || WEXITSTATUS(status) != 7 ? denied(errno ? errno : EPERM) : allowed("a shell ran");
}

// Leads a session already, so that the kernel alone would say no as well.
Outcome leave_session() { return outcome(setsid()); }
Outcome outlive_parent() {
  const Outcome result = outcome(prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0), "cleared");
  if (result.error == 0) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  return result;
}

// --- Rights and limits -----------------------------------------------------------------------------------------------

Outcome become_root() { return outcome(setuid(0)); }
Outcome become_root_group() { return outcome(setgid(0)); }
Outcome keep_capabilities() { return outcome(prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0)); }
Outcome new_namespaces() {
  return in_a_thread([] { return outcome(unshare(CLONE_NEWUTS)); });
}
Outcome new_user_namespace() {  // not for a process with threads: EINVAL, from the kernel
  return in_a_thread([] { return reached(unshare(CLONE_NEWUSER | CLONE_THREAD), EINVAL); });
}
Outcome join_namespace() { return reached(setns(-1, 0), EBADF); }
Outcome mount_something() { return reached(mount("none", "/nonexistent-kbh-act", "tmpfs", 0, nullptr), ENOENT); }
Outcome unmount_something() { return reached(umount2("/nonexistent-kbh-act", 0), ENOENT); }
Outcome open_mount_tree() { return reached(syscall(SYS_open_tree, AT_FDCWD, "/nonexistent-kbh-act", 0), ENOENT); }
Outcome pivot() { return reached(syscall(SYS_pivot_root, "/nonexistent-kbh-act", "/nonexistent-kbh-act"), ENOENT); }
Outcome swap_on() { return reached(syscall(SYS_swapon, "/nonexistent-kbh-act", 0), ENOENT); }
Outcome load_module() { return reached(syscall(SYS_init_module, nullptr, 0, ""), ENOEXEC); }
Outcome read_kernel_log() { return outcome(syscall(SYS_syslog, 10, nullptr, 0), "size of the buffer"); }

Outcome raise_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t before = limit.rlim_max;
  limit.rlim_max += 1;
  const Outcome result = outcome(setrlimit(RLIMIT_NOFILE, &limit));
  limit.rlim_max = before;
  if (result.error == 0) setrlimit(RLIMIT_NOFILE, &limit);
  return result;
}
Outcome limit_parent() {
  rlimit limit{};
  if (prlimit(getppid(), RLIMIT_CORE, nullptr, &limit) != 0) return denied(errno);
  return outcome(prlimit(getppid(), RLIMIT_CORE, &limit, nullptr), "set as it was");
}
Outcome real_time() {
  sched_param parameters{.sched_priority = 1};
  return in_a_thread([&] { return outcome(sched_setscheduler(0, SCHED_FIFO, &parameters)); });
}
Outcome raise_priority() {
  return in_a_thread([] { return outcome(setpriority(PRIO_PROCESS, 0, -1)); });
}

// --- The kernel's far corners ----------------------------------------------------------------------------------------

Outcome set_up_io_uring() {
  char parameters[120]{};
  return opened(static_cast<int>(syscall(SYS_io_uring_setup, 1, parameters)), "a ring");
}
Outcome make_bpf_map() {
  union bpf_attr attributes {};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 4;
  attributes.max_entries = 1;
  return opened(static_cast<int>(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes)), "a map");
}
Outcome open_performance_counter() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.exclude_kernel = 1;
  return opened(static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0)), "a counter");
}
Outcome handle_page_faults() {
  return opened(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* user mode only */)), "userfaultfd");
}
Outcome use_keyring() {
  return outcome(syscall(SYS_keyctl, 0 /* get keyring */, -2 /* of the process */, 1), "a keyring");
}
Outcome switch_off_randomisation() {
  const int before = personality(0xffffffff);
  if (before < 0) return denied(errno);
  return outcome(personality(static_cast<unsigned long>(before)));
}
Outcome set_clock() {  // not through the C library, which would find the error itself
  timespec impossible{.tv_sec = 0, .tv_nsec = 2'000'000'000};
  return reached(syscall(SYS_clock_settime, CLOCK_REALTIME, &impossible), EINVAL);
}
Outcome adjust_clock() {
  timex nothing{};
  return outcome(adjtimex(&nothing), "read it");
}
Outcome set_host_name() {
  char name[256]{};
  if (gethostname(name, sizeof name - 1) != 0) return denied(errno);
  return outcome(sethostname(name, strlen(name)), "set as it was");
}
Outcome type_into_terminal() { return reached(ioctl(0, TIOCSTI, "x"), ENOTTY); }
Outcome other_abi() {  // x32: a table of its own, which a filter must not forget
#ifdef __x86_64__
  return outcome(syscall(0x40000000 | SYS_getpid), "an x32 call");
#else
  return skipped("x86 only");
#endif
}

// --- The table -------------------------------------------------------------------------------------------------------

struct Act {
  const char* name;
  Outcome (*attempt)();
};

constexpr Act kActs[] = {
    {"read_given_paths", read_given_paths},
    {"read_shadow", read_shadow},
    {"list_homes", list_homes},
    {"write_root", write_root},
    {"write_usr", write_usr},
    {"write_etc", write_etc},
    {"write_dev", write_dev},
    {"write_dev_shm", write_dev_shm},
    {"write_sysctl", write_sysctl},
    {"write_own_object", write_own_object},
    {"chmod_own_object", chmod_own_object},
    {"chroot", chroot_here},
    {"fill_disk", fill_disk},
    {"open_by_handle", open_by_handle},
    {"unprotect_input", unprotect_input},
    {"write_input_through_proc", write_input_through_proc},
    {"grow_shared_memory", grow_shared_memory},
    {"map_shared_memory_writable", map_shared_memory_writable},
    {"open_map_files", open_map_files},
    {"make_memory_file", make_memory_file},
    {"make_sysv_memory", make_sysv_memory},
    {"make_message_queue", make_message_queue},
    {"connect_tcp", connect_tcp},
    {"open_udp", open_udp},
    {"open_netlink", open_netlink},
    {"bind_abstract_socket", bind_abstract_socket},
    {"make_socket_pair", make_socket_pair},
    {"ptrace_parent", ptrace_parent},
    {"read_parent_memory", read_parent_memory},
    {"write_parent_memory", write_parent_memory},
    {"open_parent_memory", open_parent_memory},
    {"open_parent_environment", open_parent_environment},
    {"open_parent_maps", open_parent_maps},
    {"open_parent_descriptor", open_parent_descriptor},
    {"open_init_environment", open_init_environment},
    {"open_parent_handle", open_parent_handle},
    {"kill_parent", kill_parent},
    {"kill_everybody", kill_everybody},
    {"kill_own_group", kill_own_group},
    {"kill_thread_of_parent", kill_thread_of_parent},
    {"queue_signal_to_parent", queue_signal_to_parent},
    {"signal_through_file", signal_through_file},
    {"fork", fork_once},
    {"clone3", clone3_once},
    {"fork_bomb", fork_bomb},
    {"thread_bomb", thread_bomb},
    {"exec", execute},
    {"execveat", execute_at},
    {"shell", run_shell},
    {"setsid", leave_session},
    {"outlive_parent", outlive_parent},
    {"setuid_root", become_root},
    {"setgid_root", become_root_group},
    {"keep_capabilities", keep_capabilities},
    {"unshare", new_namespaces},
    {"unshare_user", new_user_namespace},
    {"setns", join_namespace},
    {"mount", mount_something},
    {"umount", unmount_something},
    {"open_tree", open_mount_tree},
    {"pivot_root", pivot},
    {"swapon", swap_on},
    {"init_module", load_module},
    {"kernel_log", read_kernel_log},
    {"raise_limit", raise_limit},
    {"limit_parent", limit_parent},
    {"real_time", real_time},
    {"raise_priority", raise_priority},
    {"io_uring", set_up_io_uring},
    {"bpf", make_bpf_map},
    {"perf_event", open_performance_counter},
    {"userfaultfd", handle_page_faults},
    {"keyctl", use_keyring},
    {"personality", switch_off_randomisation},
    {"set_clock", set_clock},
    {"adjust_clock", adjust_clock},
    {"set_host_name", set_host_name},
    {"type_into_terminal", type_into_terminal},
    {"other_abi", other_abi},
};

void print(const Act& act, const Outcome& result) {
  if (result.skipped)
    printf("ACT %s skipped %s\n", act.name, result.detail.c_str());
  else if (result.error != 0)
    printf("ACT %s denied %s\n", act.name, strerrorname_np(result.error));
  else
    printf("ACT %s ALLOWED %s\n", act.name, result.detail.c_str());
  fflush(stdout);
}

}  // namespace

/// Writes no output: a run that survives ends as an ordinary wrong answer.
extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t n_inputs, const kbh_tensor*, int32_t, void*) {
  static bool done = false;  // the worker calls many times; once is enough
  if (done) return 0;
  done = true;
  g_input = n_inputs > 0 ? &inputs[0] : nullptr;
  signal(SIGXFSZ, SIG_IGN);  // the limit on file size shall be an error
  for (const Act& act : kActs) {
    errno = 0;
    print(act, act.attempt());
  }
  return 0;
}
