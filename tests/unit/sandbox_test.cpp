// The sandbox from inside and outside. Programs inside are the shell, the compiler, and this test program itself:
// started with KBH_SANDBOX_ROLE it plays that role before main and leaves.
#include "sandbox/sandbox.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kbh/host.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kbh::sandbox {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// --- Inside ----------------------------------------------------------------------------------------------------------

constexpr int kInside = 5;  // the descriptor that a role gets

[[noreturn]] void leave(const std::string& complaint) {
  fmt::print(stderr, "{}\n", complaint);
  ::_exit(9);
}

Level level_of_environment() { return *level_from(std::getenv("KBH_SANDBOX_LEVEL")); }

/// As kbh-worker does it: restrict, then load foreign code, then call it with an input in shared memory.
[[noreturn]] void load_and_run() {
  struct stat status {};
  void* data = nullptr;
  if (::fstat(kInside, &status) == 0)
    data = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, kInside, 0);
  restrict_self(level_of_environment(), Profile::worker);
  void* object = ::dlopen(std::getenv("KBH_SANDBOX_OBJECT"), RTLD_NOW);
  if (!object) leave(::dlerror());
  const auto call = reinterpret_cast<decltype(&kbh_run)>(::dlsym(object, "kbh_run"));
  if (!call) leave("no kbh_run");
  kbh_tensor input{};
  input.data = data;
  const int result = call(nullptr, &input, data ? 1 : 0, nullptr, 0, nullptr);
  std::fflush(nullptr);
  ::_exit(result);
}

[[noreturn]] void say_hello_and_count() {
  restrict_self(level_of_environment(), Profile::worker);
  for (char n = 0;; ++n) {
    if (::send(kInside, &n, 1, MSG_NOSIGNAL) != 1) ::_exit(0);
    ::usleep(2000);
  }
}

[[noreturn]] void allocate() {
  restrict_self(level_of_environment(), Profile::worker);
  void* memory = ::mmap(nullptr, 1u << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ::_exit(memory == MAP_FAILED && errno == ENOMEM ? 0 : 1);
}

[[noreturn]] void abort_itself() {
  restrict_self(level_of_environment(), Profile::worker);
  std::abort();
}

[[gnu::constructor]] void play_role() {
  const char* role = std::getenv("KBH_SANDBOX_ROLE");
  if (!role) return;
  const std::string_view name = role;
  if (name == "load") load_and_run();
  if (name == "hello") say_hello_and_count();
  if (name == "allocate") allocate();
  if (name == "abort") abort_itself();
  leave("unknown role");
}

// --- Outside ---------------------------------------------------------------------------------------------------------

/// A folder that everybody may enter, with this test program in it.
class Stage {
 public:
  Stage() {
    ::chmod(folder_.path().c_str(), 0755);
    fs::copy_file("/proc/self/exe", program());
    ::chmod(program().c_str(), 0755);
    fs::create_directory(folder_.path() / "out");
  }
  [[nodiscard]] fs::path path() const { return folder_.path(); }
  [[nodiscard]] fs::path program() const { return folder_.path() / "tests"; }
  [[nodiscard]] fs::path out() const { return folder_.path() / "out"; }
  fs::path write(const std::string& name, std::string_view content) const {
    std::ofstream(path() / name) << content;
    return path() / name;
  }

 private:
  TempDir folder_{"kbh-sandbox-test"};
};

/// Root in a container may lack the right, or the numbers, to become somebody else. Such a root has no limit on
/// processes.
bool root_stays_root() {
  if (::geteuid() != 0) return false;
  std::ifstream map("/proc/self/uid_map");
  long first = 0, outside = 0, count = 0;
  map >> first >> outside >> count;
  return count < 8192 || ::prctl(PR_CAPBSET_READ, CAP_SETUID) != 1;
}

class SandboxLevel : public ::testing::TestWithParam<Level> {
 protected:
  void SetUp() override {
    if (!support().offers(level())) GTEST_SKIP() << support().why << ". " << support().missing;
  }
  static Level level() { return GetParam(); }

  static Spec shell(const std::string& script) {
    return {.level = level(),
            .profile = Profile::compiler,
            .argv = {"/bin/sh", "-c", script},
            .environment = {"PATH=/usr/bin:/bin"}};
  }

  Spec role(const std::string& name) const {
    return {.level = level(),
            .argv = {stage_.program()},
            .environment = {"KBH_SANDBOX_ROLE=" + name, "KBH_SANDBOX_LEVEL=" + std::string(name_of(level())),
                            "ASAN_OPTIONS=detect_leaks=0"},
            .read_only = {{stage_.path(), {}}}};
  }

  /// A copy in the stage that everybody may read: the checkout may lie in a closed home.
  fs::path open_copy(const fs::path& original) const {
    const fs::path copy = stage_.path() / original.filename();
    if (original != copy) fs::copy(original, copy, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    const auto open = [](const fs::path& p) { fs::permissions(p, fs::perms(fs::is_directory(p) ? 0755 : 0644)); };
    open(copy);
    if (fs::is_directory(copy))
      for (const auto& entry : fs::recursive_directory_iterator(copy)) open(entry.path());
    return copy;
  }

  /// Compiles in the sandbox itself. The result lies in stage_.out().
  fs::path compile(const fs::path& original, std::vector<std::string> flags) const {
    const Bind out{stage_.out(), {}};
    const fs::path source = open_copy(original);
    Spec spec{.level = level(),
              .profile = Profile::compiler,
              .argv = {"/usr/bin/g++", "-std=c++20", "-O1", "-shared", "-fPIC"},
              .environment = {"PATH=/usr/bin:/bin", "TMPDIR=" + out.host.string()},
              .read_only = {{open_copy(fs::path(KBH_SOURCE_DIR) / "include"), "/kbh/include"}, {source, {}}},
              .writable = {out},
              .limits = {.cpu_seconds = 60}};
    spec.argv.push_back("-I" + seen_at(spec.read_only[0], level()).string());
    spec.argv.insert(spec.argv.end(), flags.begin(), flags.end());
    const fs::path object = stage_.out() / (source.stem().string() + ".so");
    spec.argv.insert(spec.argv.end(), {source, "-o", object});
    const RunResult result = run(spec, 120, 1 << 16);
    EXPECT_TRUE(result.ok()) << result.output;
    return object;
  }

  Stage stage_;
};

std::string by_level(const ::testing::TestParamInfo<Level>& test) { return std::string(name_of(test.param)); }

INSTANTIATE_TEST_SUITE_P(Levels, SandboxLevel, ::testing::Values(Level::none, Level::reduced, Level::full), by_level);

using Words = std::vector<std::string>;

Words words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

struct Acts {
  std::map<std::string, std::string> denied;   // name: errno
  std::map<std::string, std::string> allowed;  // name: detail
  std::map<std::string, std::string> skipped;
};

Acts parse_acts(const std::string& output) {
  Acts acts;
  std::istringstream lines(output);
  for (std::string line, tag, name, verdict, rest; std::getline(lines, line);) {
    std::istringstream fields(line);
    fields >> tag >> name >> verdict;
    std::getline(fields, rest);
    if (tag != "ACT") continue;
    (verdict == "denied" ? acts.denied : verdict == "ALLOWED" ? acts.allowed : acts.skipped)[name] = rest;
  }
  return acts;
}

std::string listing(const std::map<std::string, std::string>& acts) {
  std::string text;
  for (const auto& [name, detail] : acts) text += name + detail + "\n";
  return text;
}

/// Shared memory as the CPU device hands it out; without seals when `open` is set, as a tester of the tests.
UniqueFd shared_memory(bool open) {
  UniqueFd fd(::memfd_create("kbh-input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), 8192), 0);
  const int seals = open ? 0 : F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

constexpr int kActs = 79;

TEST_P(SandboxLevel, ForbiddenActs) {
  const fs::path object = compile(fs::path(KBH_SOURCE_DIR) / "tests/data/acts/acts.cpp", {});
  const fs::path secret = stage_.path().string() + "-secret";  // not below what is bound
  std::ofstream(secret) << "expected values";
  ::chmod(secret.c_str(), 0644);

  const UniqueFd memory = shared_memory(level() == Level::none);
  Spec spec = role("load");
  spec.environment.push_back("KBH_SANDBOX_OBJECT=" + object.string());
  spec.environment.push_back("KBH_ACT_PATHS=" + secret.string() + ":" + KBH_SOURCE_DIR + "/CMakeLists.txt");
  spec.fds = {{memory.get(), kInside}};
  spec.limits.memory_bytes = std::int64_t{4} << 30;
  if (level() == Level::none) spec.limits.processes = 2000;
  const RunResult result = run(spec, 120, 1 << 20);
  fs::remove(secret);
  ASSERT_TRUE(result.ok()) << result.exit_code << " " << result.signal << "\n" << result.output;

  Acts acts = parse_acts(result.output);
  EXPECT_EQ(acts.denied.size() + acts.allowed.size() + acts.skipped.size(), std::size_t{kActs});
  if (level() == Level::none) {
    // The test of the test: without a sandbox each of these passes, for every user.
    for (const char* name :
         {"read_given_paths", "fill_disk", "make_memory_file", "connect_tcp", "open_udp", "fork", "clone3", "fork_bomb",
          "exec", "execveat", "shell", "kill_parent", "signal_through_file", "outlive_parent", "bind_abstract_socket",
          "make_sysv_memory", "open_parent_handle", "setns", "set_clock"})
      EXPECT_TRUE(acts.allowed.contains(name)) << name << acts.denied.at(name);
    EXPECT_EQ(::geteuid() == 0 ? acts.allowed.size() > 55 : acts.allowed.size() > 25, true) << listing(acts.denied);
    return;
  }
  if (root_stays_root()) acts.allowed.erase("thread_bomb");
  EXPECT_EQ(listing(acts.allowed), "");
  EXPECT_EQ(listing(acts.skipped), "");
}

TEST_P(SandboxLevel, CompilesAndReportsErrors) {
  const fs::path good =
      stage_.write("good.cpp", "#include <vector>\nint f() { return (int)std::vector<int>(3).size(); }\n");
  EXPECT_TRUE(fs::exists(compile(good, {})));

  const fs::path bad = stage_.write("bad.cpp", "int f() { return oops; }\n");
  Spec spec = shell("exec g++ -c " + bad.string() + " -o /dev/null");
  spec.environment.push_back("TMPDIR=" + stage_.out().string());
  spec.read_only = {{bad, {}}};
  spec.writable = {{stage_.out(), {}}};
  const RunResult result = run(spec, 60, 1 << 16);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("bad.cpp:1:18"));
}

TEST_P(SandboxLevel, ThreadsAndOpenMpWork) {
  const fs::path source = stage_.write("threads.cpp", R"(
#include <kbh/host.h>
#include <linux/capability.h>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>
extern "C" int kbh_run(void*, const kbh_tensor*, int32_t, const kbh_tensor*, int32_t, void*) {
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { count += 1; });
  for (auto& thread : threads) thread.join();
  long sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int i = 0; i < 1000; ++i) sum += i;
  std::string line;
  std::getline(std::ifstream("/proc/self/maps"), line);
  printf("threads %d sum %ld maps %d processors %u\n", count.load(), sum, !line.empty(),
         std::thread::hardware_concurrency());
  return 0;
}
)");
  Spec spec = role("load");
  spec.environment.push_back("KBH_SANDBOX_OBJECT=" + compile(source, {"-fopenmp"}).string());
  const RunResult result = run(spec, 60, 1 << 16);
  EXPECT_TRUE(result.ok());
  EXPECT_THAT(result.output,
              HasSubstr(fmt::format("threads 8 sum 499500 maps 1 processors {}", std::thread::hardware_concurrency())));
}

TEST_P(SandboxLevel, MemoryLimitHolds) {
#ifdef KBH_SANITIZED
  GTEST_SKIP() << "sanitizers need the whole address space";
#endif
  Spec spec = role("allocate");
  EXPECT_EQ(run(spec, 20, 4096).exit_code, 1);
  spec.limits.memory_bytes = 512 << 20;
  EXPECT_EQ(run(spec, 20, 4096).exit_code, 0);
}

TEST_P(SandboxLevel, ProcessorTimeLimitHolds) {
  Spec spec = shell("while :; do :; done");
  spec.limits.cpu_seconds = 1;
  const RunResult result = run(spec, 60, 4096);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, SIGXCPU);
}

TEST_P(SandboxLevel, ProcessLimitHolds) {
  if (root_stays_root() || (level() == Level::none && ::geteuid() == 0))
    GTEST_SKIP() << "root has no limit on processes";
  Spec spec = shell("i=0; while [ $i -lt 200 ]; do sleep 5 & i=$((i+1)); done");
  spec.limits.processes = 20;
  const RunResult result = run(spec, 20, 1 << 16);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("fork"));
}

TEST_P(SandboxLevel, ExitCodesAndSignalsArrive) {
  EXPECT_EQ(run(shell("exit 7"), 20, 4096).exit_code, 7);
  const RunResult aborted = run(role("abort"), 20, 4096);
  EXPECT_EQ(aborted.signal, SIGABRT) << aborted.exit_code;
}

TEST_P(SandboxLevel, OnlyListedDescriptorsAndVariablesArePassed) {
  const UniqueFd ours(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC on purpose
  Spec spec = shell("env; exec ls /proc/self/fd");
  spec.environment = {"PATH=/usr/bin:/bin", "COLOUR=green"};
  spec.fds = {{ours.get(), 7}};
  ::setenv("KBH_SECRET", "1", 1);
  const RunResult result = run(spec, 20, 4096);
  ::unsetenv("KBH_SECRET");
  Words seen = words(result.output);
  // 3 is ls's own view of the folder. The shell adds PWD.
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre("0", "1", "2", "3", "7", "PATH=/usr/bin:/bin", "COLOUR=green",
                                                    ::testing::StartsWith("PWD=")));
}

TEST_P(SandboxLevel, OutputIsCapped) {
  const RunResult result = run(shell("head -c 3000000 /dev/zero; echo end"), 20, 1000);
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.output.size(), 1000u);

  const RunResult exact = run(shell("printf 12345"), 20, 5);
  EXPECT_FALSE(exact.truncated);
  EXPECT_EQ(exact.output, "12345");
}

TEST_P(SandboxLevel, EndlessOutputEndsAtTheTimeLimit) {
  const RunResult result = run(shell("while :; do echo noise; done"), 0.5, 1000);
  EXPECT_TRUE(result.timed_out);
  EXPECT_TRUE(result.truncated);
}

bool ends_within(int handle, int milliseconds) {
  pollfd poll{.fd = handle, .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, milliseconds) == 1;
}

UniqueFd handle_of(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

/// One end for the sandbox; the other learns the sender's process number, as seen from here.
std::array<UniqueFd, 2> channel() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const int on = 1;
  EXPECT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// 0 when the other end is closed or nothing comes in 20 s.
pid_t sender_of_next(int fd) {
  if (!ends_within(fd, 20000)) return 0;
  char byte;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != 1) return 0;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_CREDENTIALS) return 0;
  ucred sender{};
  std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
  return sender.pid;
}

char state_of(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stat, text);
  const auto end = text.rfind(')');
  return end == std::string::npos ? '?' : text.at(end + 2);
}

TEST_P(SandboxLevel, WorkerIsStoppedContinuedAndKilled) {
  auto [ours, theirs] = channel();
  Spec spec = role("hello");
  spec.fds = {{theirs.get(), kInside}};
  Child child = spawn(spec);
  theirs.reset();
  const pid_t worker = sender_of_next(ours.get());
  ASSERT_GT(worker, 1);
  const UniqueFd handle = handle_of(worker);

  ASSERT_EQ(::kill(worker, SIGSTOP), 0);
  for (int i = 0; i < 1000 && state_of(worker) != 'T'; ++i) ::usleep(1000);
  EXPECT_EQ(state_of(worker), 'T');
  while (ends_within(ours.get(), 0)) sender_of_next(ours.get());  // what was under way
  EXPECT_FALSE(ends_within(ours.get(), 50));                      // silence
  ASSERT_EQ(::kill(worker, SIGCONT), 0);
  EXPECT_EQ(sender_of_next(ours.get()), worker);

  EXPECT_FALSE(child.wait(0).has_value());
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  const auto status = child.wait(20);
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL);
  EXPECT_TRUE(ends_within(handle.get(), 1000));
}

TEST_P(SandboxLevel, NothingRunsAfterTheChildIsDestroyed) {
  auto [ours, theirs] = channel();
  Spec spec = role("hello");
  spec.fds = {{theirs.get(), kInside}};
  std::optional<Child> child = spawn(spec);
  theirs.reset();
  const UniqueFd handle = handle_of(sender_of_next(ours.get()));
  ASSERT_TRUE(handle);
  child.reset();
  EXPECT_TRUE(ends_within(handle.get(), 0));
}

/// Every copy of the other end is closed: nobody who inherited it lives.
bool hangs_up_within(int fd, int milliseconds) {
  char byte;
  return ends_within(fd, milliseconds) && ::recv(fd, &byte, 1, 0) == 0;
}

TEST_P(SandboxLevel, TimeLimitKillsGrandchildren) {
  auto [ours, theirs] = channel();
  Spec spec = shell("(sleep 1000 & sleep 1000) & sleep 1000");
  spec.fds = {{theirs.get(), kInside}};
  const RunResult result = run(spec, 0.5, 4096);
  theirs.reset();
  EXPECT_TRUE(result.timed_out);
  EXPECT_LT(result.seconds, 20);
  EXPECT_TRUE(hangs_up_within(ours.get(), 1000));
}

TEST_P(SandboxLevel, WhatAProgramLeavesBehindDoesNotHoldUs) {
  auto [ours, theirs] = channel();
  Spec spec = shell("sleep 1000 & exit 3");
  spec.fds = {{theirs.get(), kInside}};
  const RunResult result = run(spec, 300, 4096);
  theirs.reset();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(hangs_up_within(ours.get(), 1000));
}

TEST_P(SandboxLevel, DiesWithAKilledGrader) {
  auto [ours, theirs] = channel();
  const pid_t grader = ::fork();
  ASSERT_GE(grader, 0);
  if (grader == 0) {
    Spec spec = role("hello");
    spec.fds = {{theirs.get(), kInside}};
    const Child child = spawn(spec);
    for (;;) ::pause();
  }
  theirs.reset();
  const pid_t worker = sender_of_next(ours.get());
  const UniqueFd handle = handle_of(worker);
  EXPECT_TRUE(handle);
  EXPECT_FALSE(ends_within(handle.get(), 50));
  ::kill(grader, SIGKILL);
  ::waitpid(grader, nullptr, 0);
  EXPECT_TRUE(ends_within(handle.get(), 5000));
}

TEST_P(SandboxLevel, ABlockedSignalMaskIsNotInherited) {
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const RunResult result = run(shell("exec grep SigBlk /proc/self/status"), 20, 4096);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_THAT(result.output, HasSubstr("0000000000000000"));
}

class Confined : public SandboxLevel {};
INSTANTIATE_TEST_SUITE_P(Levels, Confined, ::testing::Values(Level::reduced, Level::full), by_level);

TEST_P(Confined, HasNoRightsOfOurs) {
  const RunResult result =
      run(shell("id -u; exec grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status"), 20, 4096);
  EXPECT_THAT(result.output, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(result.output, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(result.output, HasSubstr("Seccomp:\t2"));
  EXPECT_EQ(result.output.starts_with("0\n"), root_stays_root());
}

TEST_P(Confined, WritesOnlyWhereAllowed) {
  const Bind out{stage_.out(), "/out"}, in{stage_.path(), "/in"};
  Spec spec =
      shell(fmt::format("echo a > {}/file && cat {}/text && ! echo b > {}/other", seen_at(out, level()).string(),
                        seen_at(in, level()).string(), seen_at(in, level()).string()));
  stage_.write("text", "readable");
  spec.read_only = {in};
  spec.writable = {out};
  const RunResult result = run(spec, 20, 4096);
  EXPECT_TRUE(result.ok()) << result.output;
  EXPECT_THAT(result.output, HasSubstr("readable"));
  EXPECT_EQ(read_text(stage_.out() / "file"), "a\n");
}

TEST(SandboxFull, FoldersOnTheWayMayBeClosedToOthers) {
  if (!support().offers(Level::full)) GTEST_SKIP() << support().why << ". " << support().missing;
  if (::geteuid() == 0 && ::prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) != 1) GTEST_SKIP() << "root that may not mount";
  const TempDir closed;  // 0700
  std::ofstream(closed.path() / "file") << "shown";
  const RunResult result =
      run({.argv = {"/bin/cat", "/given/file"}, .read_only = {{closed.path() / "file", "/given/file"}}}, 20, 4096);
  EXPECT_EQ(result.output, "shown");
}

TEST(SandboxFull, IsAloneAndSmall) {
  if (!support().offers(Level::full)) GTEST_SKIP() << support().why << ". " << support().missing;
  Spec spec{
      .profile = Profile::compiler,
      .argv = {"/bin/sh", "-c", "ls /; ls /proc | grep -c '^[0-9]'; cat /proc/1/cmdline; hostname; cat /proc/net/dev"},
      .environment = {"PATH=/usr/bin:/bin"}};
  const RunResult result = run(spec, 20, 1 << 16);
  EXPECT_THAT(result.output, Not(HasSubstr("home")));
  EXPECT_THAT(result.output, Not(HasSubstr("root")));
  EXPECT_THAT(result.output, Not(HasSubstr("eth")));
  EXPECT_THAT(result.output, HasSubstr("kbh\n"));
}

TEST(SandboxReduced, SaysWhichFolderIsClosed) {
  if (!support().offers(Level::reduced)) GTEST_SKIP() << support().why;
  if (::geteuid() != 0 || root_stays_root()) GTEST_SKIP() << "the sandbox has our own eyes";
  const TempDir closed;
  std::ofstream(closed.path() / "file") << "x";
  EXPECT_EQ(first_closed_folder(closed.path() / "file"), closed.path());
  try {
    spawn({.level = Level::reduced, .argv = {"/bin/true"}, .read_only = {{closed.path() / "file", {}}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("may not enter " + closed.path().string()));
  }
}

TEST(Sandbox, MissingBindIsNamed) {
  try {
    spawn({.level = Level::none, .argv = {"/nonexistent/program"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/program"));
  }
  if (!support().offers(Level::full)) return;
  try {
    spawn({.argv = {"/bin/true"}, .read_only = {{"/nonexistent/data", {}}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/data"));
  }
}

TEST(Sandbox, LevelNamesRoundTrip) {
  for (const Level level : {Level::none, Level::reduced, Level::full}) EXPECT_EQ(level_from(name_of(level)), level);
  EXPECT_EQ(level_from("half"), std::nullopt);
}

TEST(Sandbox, SupportGivesReasons) {
  EXPECT_THAT(support().why, Not(IsEmpty()));
  EXPECT_EQ(support().missing.empty(), support().level == Level::full);
}

TEST(Sandbox, BindsMoveOnlyAtLevelFull) {
  const Bind bind{"/host/a", "/a"};
  EXPECT_EQ(seen_at(bind, Level::full), "/a");
  EXPECT_EQ(seen_at(bind, Level::reduced), "/host/a");
  EXPECT_EQ(seen_at({"/host/a", {}}, Level::full), "/host/a");
}

TEST(Sandbox, ManyThreadsMaySpawn) {
  const Level level = support().level;
  std::vector<std::thread> threads;
  std::array<int, 8> codes{};
  for (std::size_t i = 0; i < codes.size(); ++i)
    threads.emplace_back([&, i] {
      codes[i] =
          run({.level = level, .profile = Profile::compiler, .argv = {"/bin/sh", "-c", fmt::format("exit {}", i + 1)}},
              60, 4096)
              .exit_code;
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(codes[i], static_cast<int>(i) + 1);
}

}  // namespace
}  // namespace kbh::sandbox
