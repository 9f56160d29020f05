#include "lane/host/session.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "device/cpu/shared_memory.hpp"
#include "lane/poison.hpp"
#include "lane/protocol.hpp"
#include "lane/staging.hpp"
#include "lane/worker_process.hpp"

namespace kbh::host {
namespace {

using protocol::Command;
using protocol::Control;
using protocol::now_ns;

constexpr double kLingerSeconds = 0.005;
// Seen running once may be a pool on its way to sleep: the second look is longer, and a thread must be seen running at
// (nearly) every moment of it.
constexpr double kSecondLookSeconds = 0.05;
constexpr int kSecondLooks = 10;
constexpr double kBusyShare = 0.8;
constexpr double kStopSeconds = 5;  // to see all threads of a worker stopped

std::uint64_t random_word() {
  std::uint64_t word = 0;
  const std::string bytes = random_bytes(sizeof word);
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

/// Names of the entries of /proc/PID/task.
std::vector<std::string> tasks_of(pid_t pid) {
  std::vector<std::string> tasks;
  DIR* folder = ::opendir(fmt::format("/proc/{}/task", pid).c_str());
  if (!folder) return tasks;
  while (const dirent* entry = ::readdir(folder))
    if (entry->d_name[0] != '.') tasks.emplace_back(entry->d_name);
  ::closedir(folder);
  return tasks;
}

std::string slurp_proc(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t n = fd ? ::read(fd.get(), text, sizeof text) : 0;
  return {text, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

/// 'R', 'S', 'T', ... or 0 when the task is gone.
char run_state_of(pid_t pid, const std::string& task) {
  const std::string stat = slurp_proc(fmt::format("/proc/{}/task/{}/stat", pid, task));
  const std::size_t behind_name = stat.rfind(')');
  return behind_name == std::string::npos || behind_name + 2 >= stat.size() ? '\0' : stat[behind_name + 2];
}

/// Time that a task spent ready but without a processor, in us. 0 where the kernel keeps no such account.
double task_waited_us(const std::string& task_folder) {
  std::istringstream fields(slurp_proc(task_folder + "/schedstat"));
  double ran_ns = 0;
  double waited_ns = 0;
  return fields >> ran_ns >> waited_ns ? waited_ns * 1e-3 : 0;
}

/// The same of all tasks of a process. (Not of our own thread: it may well wait while the worker works.)
double waited_us(pid_t pid) {
  double sum = 0;
  for (const std::string& task : tasks_of(pid)) sum += task_waited_us(fmt::format("/proc/{}/task/{}", pid, task));
  return sum;
}

}  // namespace

struct Session::Impl {
  SessionSpec spec;
  Staging staging;
  WorkerProcess process;
  UniqueFd control_fd;
  Control* control = nullptr;
  pid_t pid = -1;
  UniqueFd pidfd;
  bool stopped = false;
  double empty_us = 0;

  // the open shape
  std::string shape_text;
  std::vector<TensorSpec> tensors;
  cpu::SharedArena read_only;
  cpu::SharedArena read_write;
  struct SlotPlaces {
    int state = 0;
    std::vector<cpu::Placement> places;  // inputs and outputs, in the order of the specs
  };
  std::vector<std::vector<cpu::Placement>> state_places;
  std::vector<SlotPlaces> slot_places;
  std::vector<SlotMemory> memory;
  std::vector<std::uint64_t> salts;
  std::vector<std::vector<std::uint64_t>> addresses;  // in the worker: states, then slots. A claim, for messages only

  explicit Impl(const SessionSpec& s)
      : spec(s), staging("kbh-worker"), process(static_cast<std::size_t>(s.limits.log_kib) << 10) {
    staging.add(s.artifact, "submission.so");
  }

  ~Impl() {
    process.end();
    if (control) ::munmap(control, sizeof(Control));
  }

  void start();
  void calibrate();
  std::optional<Json> ask(const Json& message, double seconds, std::string_view doing, std::optional<Failure>* failure,
                          std::span<const int> fds = {});
  std::optional<Failure> command(Command what, std::span<const int> slots, double seconds, CallReport* report);
  std::optional<Failure> create(const Json& what, const std::string& shape);
  std::optional<Failure> arm();
  std::optional<Failure> leave();
  void resume();
  bool stop();
  double linger(double seconds, int looks);
  Failure died(std::string_view doing);
  Failure too_slow(std::string_view doing, double seconds);
  [[nodiscard]] std::string describe_fault() const;
  [[nodiscard]] std::uint64_t outputs_fingerprint(std::span<const int> slots) const;
  void signal(int number) const { ::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0); }
};

void Session::Impl::start() {
  control_fd = UniqueFd(::memfd_create("kbh-control", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!control_fd || ::ftruncate(control_fd.get(), sizeof(Control)) != 0) fail_errno("control page");
  ::fcntl(control_fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* page = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, control_fd.get(), 0);
  if (page == MAP_FAILED) fail_errno("control page");
  control = static_cast<Control*>(page);

  sandbox::Spec box;
  box.level = spec.level;
  box.profile = sandbox::Profile::worker;
  const sandbox::Bind home{staging.path(), "/kbh"};
  const fs::path inside = sandbox::seen_at(home, spec.level);
  box.read_only = {home};
  box.argv = {(inside / "kbh-worker").string(), std::string(sandbox::name_of(spec.level)), "host"};
  // Idle OpenMP threads sleep instead of spinning: a spinning thread would look like one that outlives its call.
  box.environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/tmp", "TMPDIR=/tmp", "OMP_WAIT_POLICY=passive"};
#ifdef KBH_SANITIZED
  box.environment.push_back("ASAN_OPTIONS=detect_leaks=0");  // the leak detector needs ptrace, which the sandbox denies
#endif
  box.fds = {{control_fd.get(), protocol::kControlFd}};
  box.limits.memory_bytes = (spec.limits.memory_mib << 20) + spec.shared_bytes;
  box.limits.processes = spec.limits.processes;
  pid = process.start(std::move(box));
  pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) fail_errno("pidfd_open of the worker");
}

/// The grader's clock around nothing, with cold caches: what a call costs before the submission does anything. The
/// least of all, since a busy machine only adds: taken too high, it would hide work.
void Session::Impl::calibrate() {
  if (arm()) fail(ErrorKind::internal, "the worker died before it loaded anything: {}", process.log());
  std::vector<double> times;
  for (int i = 0; i < spec.calibration_calls; ++i) {
    if (spec.before_calibration_call) spec.before_calibration_call();
    CallReport report;
    if (command(Command::empty, {}, 5, &report)) fail(ErrorKind::internal, "an empty call failed: {}", process.log());
    times.push_back(report.grader_us - report.waited_us);
  }
  empty_us = times.empty() ? 0 : *std::min_element(times.begin(), times.end());
  if (leave()) fail(ErrorKind::internal, "the worker died before it loaded anything: {}", process.log());
}

std::string Session::Impl::describe_fault() const {
  const std::uint64_t address = control->fault_address;
  for (std::size_t s = 0; s < slot_places.size(); ++s) {
    const std::size_t row = state_places.size() + s;
    if (row >= addresses.size()) break;
    std::size_t i = 0;
    for (const TensorSpec& t : tensors) {
      if (t.role == Role::state) continue;
      const std::size_t index = i++;
      if (index >= addresses[row].size()) break;
      const std::uint64_t begin = addresses[row][index];
      const std::uint64_t end = begin + t.bytes();
      if (address >= begin && address < end)
        return t.role == Role::output ? fmt::format("a fault inside output `{}`", t.name)
                                      : fmt::format("it wrote to input `{}`, which is read-only", t.name);
      if (address >= end && address < end + (1 << 16))
        return fmt::format("it went {} bytes past the end of {} `{}`", address - end + 1,
                           t.role == Role::output ? "output" : "input", t.name);
      if (address < begin && address + (1 << 16) >= begin)
        return fmt::format("it went {} bytes before the start of {} `{}`", begin - address,
                           t.role == Role::output ? "output" : "input", t.name);
    }
  }
  return fmt::format("address {:#x}", address);
}

Failure Session::Impl::died(std::string_view doing) {
  const std::optional<int> status = process.wait(2);
  process.end();
  Failure failure;
  failure.kind = Failure::Kind::crashed;
  const int fault = control->fault_signal;
  const std::string printed = process.log();
  for (const std::string& line : last_lines(printed, 3)) failure.details.push_back("it printed: " + line);
  if (fault == SIGABRT && printed.find("bad_alloc") != std::string::npos) {
    failure.what =
        fmt::format("out of memory while {}: an allocation failed (limit {} MiB)", doing, spec.limits.memory_mib);
    failure.next = "allocate less, or allocate once in kbh_create";
  } else if (fault > 0 && fault < NSIG) {
    const bool bad_access = fault == SIGSEGV || fault == SIGBUS;
    failure.what = fmt::format("killed by signal {} ({}) while {}{}", fault, ::strsignal(fault), doing,
                               bad_access ? ": " + describe_fault() : "");
    failure.next = bad_access ? "run it on odd sizes under -fsanitize=address; buffers end at an unmapped page"
                              : "see worker.log for what it printed";
  } else if (status && WIFEXITED(*status)) {
    failure.what = fmt::format("the submission ended its process (exit code {}) while {}", WEXITSTATUS(*status), doing);
    failure.next = "return an error code from kbh_run instead of calling exit";
  } else if (status) {
    const int number = WTERMSIG(*status);
    failure.what = fmt::format("killed by signal {} ({}) while {}", number, ::strsignal(number), doing);
    failure.next = "a limit may have been reached (memory, processes); see worker.log";
  } else {
    failure.what = fmt::format("the worker broke off the protocol while {}", doing);
    failure.next = "do not touch descriptors that you did not open";
  }
  return failure;
}

Failure Session::Impl::too_slow(std::string_view doing, double seconds) {
  process.end();
  return {Failure::Kind::timed_out,
          fmt::format("no return within {:g} s while {}", seconds, doing),
          "look for an endless loop or a deadlock between threads",
          {}};
}

std::optional<Json> Session::Impl::ask(const Json& message, double seconds, std::string_view doing,
                                       std::optional<Failure>* failure, std::span<const int> fds) {
  std::string problem;
  auto answer = process.ask(message, seconds, &problem, fds);
  if (!answer) *failure = problem == "timeout" ? too_slow(doing, seconds) : died(doing);
  return answer;
}

std::optional<Failure> Session::Impl::arm() {
  std::optional<Failure> failure;
  ask({{"op", "arm"}}, 5, "getting ready", &failure);
  if (failure) return failure;
  if (!stop()) return died("getting ready");
  return std::nullopt;
}

std::optional<Failure> Session::Impl::leave() {
  if (auto failure = command(Command::leave, {}, 5, nullptr)) return failure;
  resume();
  return std::nullopt;
}

void Session::Impl::resume() {
  signal(SIGCONT);
  stopped = false;
}

/// Sees to it that no thread of the worker runs. False when the worker is gone.
bool Session::Impl::stop() {
  signal(SIGSTOP);
  const std::int64_t deadline = now_ns() + static_cast<std::int64_t>(kStopSeconds * 1e9);
  for (;;) {
    const std::vector<std::string> tasks = tasks_of(pid);
    if (tasks.empty() || now_ns() > deadline) return false;
    const bool all = std::all_of(tasks.begin(), tasks.end(), [&](const std::string& task) {
      const char state = run_state_of(pid, task);
      // A thread that ended in between counts as stopped; a zombie leader means that the process is going down.
      return state == 'T' || state == 't' || state == '\0' || state == 'X';
    });
    if (all) {
      stopped = true;
      return true;
    }
    if (process.wait(0)) return false;
  }
}

std::uint64_t Session::Impl::outputs_fingerprint(std::span<const int> slots) const {
  std::uint64_t all = 0;
  for (const int slot : slots)
    for (const TensorView& output : memory[static_cast<std::size_t>(slot)].outputs)
      all = all * 31 + fingerprint({output.data, output.spec->bytes()});
  return all;
}

/// Has kbh_create called; `what` says for which states.
std::optional<Failure> Session::Impl::create(const Json& what, const std::string& shape) {
  std::optional<Failure> failure;
  const auto created = ask(what, spec.limits.create_seconds, "running kbh_create", &failure);
  if (!created) return failure;
  const auto status = created->find("status");
  if (status != created->end() && status->is_number_integer() && *status == 0) return std::nullopt;
  return Failure{
      Failure::Kind::crashed,
      fmt::format("kbh_create returned {} for {}", status == created->end() ? "nothing" : status->dump(), shape),
      "the shape lies in the problem's declared domain (`kbh problems`) and must be supported",
      {}};
}

std::optional<Failure> Session::Impl::command(Command what, std::span<const int> slots, double seconds,
                                              CallReport* report) {
  expect(slots.size() <= protocol::kMaxBatch, "a batch fits the control page");
  expect(stopped, "a call starts from a stopped worker");
  control->command = what;
  control->count = static_cast<std::uint32_t>(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) control->slots[i] = static_cast<std::uint32_t>(slots[i]);
  const std::uint32_t ticket = control->go.load() + 1;
  std::uint32_t last = 0;
  const double waited_before = report ? waited_us(pid) : 0;
  control->go.store(ticket);
  protocol::futex_wake(&control->go);

  const std::int64_t begin = now_ns();
  const std::int64_t deadline = begin + static_cast<std::int64_t>(seconds * 1e9);
  resume();
  while ((last = control->done.load()) != ticket) {
    protocol::futex_wait(&control->done, last, 0.05);
    if (control->done.load() == ticket) break;
    if (process.wait(0)) return died("running a call");
    if (now_ns() > deadline) return too_slow("running a call", seconds);
  }
  const std::int64_t end = now_ns();
  if (report) report->waited_us = waited_us(pid) - waited_before;  // at once: what it waits from now on is no excuse
  // A thread that writes on after "done" is caught in the act: what stands there now must stand there still when every
  // thread has stopped. Stopping is not billed: it costs more with more (sleeping) threads, honest ones too.
  const bool calls = what == Command::calls;
  const std::uint64_t at_done = calls ? outputs_fingerprint(slots) : 0;
  if (!stop()) return died("returning from a call");
  if (calls && outputs_fingerprint(slots) != at_done)
    return Failure{Failure::Kind::rejected,
                   "an output changed after kbh_run had returned",
                   "join or await every thread that writes before returning",
                   {}};

  if (!report) return std::nullopt;
  report->grader_us = static_cast<double>(end - begin) * 1e-3;
  report->worker_us.clear();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    // In doubles: these are claims, and the difference of hostile integers may overflow.
    report->worker_us.push_back((static_cast<double>(control->end_ns[i]) - static_cast<double>(control->begin_ns[i])) *
                                1e-3);
    const std::int32_t status = control->status[i];
    if (status != 0)
      return Failure{Failure::Kind::crashed,
                     fmt::format("kbh_run returned {} (0 means success)", status),
                     "see worker.log for what it printed",
                     {}};
  }
  return std::nullopt;
}

Session::Session(const SessionSpec& spec) : impl_(std::make_unique<Impl>(spec)) {
  impl_->start();
  impl_->calibrate();
}

Session::~Session() = default;

std::optional<Failure> Session::load() {
  Impl& s = *impl_;
  const sandbox::Bind home{s.staging.path(), "/kbh"};
  const fs::path artifact = sandbox::seen_at(home, s.spec.level) / "submission.so";
  std::optional<Failure> failure;
  const auto answer = s.ask({{"op", "load"}, {"path", artifact.string()}}, s.spec.limits.create_seconds,
                            "loading the submission", &failure);
  if (!answer) return failure;
  if (answer->contains("error") && (*answer)["error"].is_string())
    return Failure{
        Failure::Kind::rejected,
        fmt::format("the built object cannot be loaded: {}", (*answer)["error"].get<std::string>().substr(0, 500)),
        "export kbh_run as include/kbh/host.h declares it, and link nothing that is not in the sandbox",
        {}};
  return std::nullopt;
}

std::optional<Failure> Session::open_shape(const Shape& shape, const std::vector<TensorSpec>& tensors, int slots,
                                           int states, const FillState& fill_state) {
  Impl& s = *impl_;
  std::optional<Failure> failure;
  if (s.stopped) {
    if (auto left = s.leave()) return left;
    if (!s.ask({{"op", "close"}}, s.spec.limits.create_seconds, "destroying its objects", &failure)) return failure;
  }
  s.shape_text = shape.text();
  s.tensors = tensors;
  s.state_places.assign(static_cast<std::size_t>(states), {});
  s.slot_places.assign(static_cast<std::size_t>(slots), {});
  s.salts.assign(static_cast<std::size_t>(slots), 0);

  // Lay out, then allocate, then hand over.
  std::size_t read_only_bytes = 0;
  std::size_t read_write_bytes = 0;
  const auto cursor = [&](const TensorSpec& t) {
    return t.role == Role::output ? &read_write_bytes : &read_only_bytes;
  };
  for (std::size_t i = 0; i < s.state_places.size(); ++i)
    for (const TensorSpec& t : tensors)
      if (t.role == Role::state) s.state_places[i].push_back(cpu::place(t.bytes(), i % 2 == 0, cursor(t)));
  for (std::size_t i = 0; i < s.slot_places.size(); ++i) {
    s.slot_places[i].state = static_cast<int>(i) % states;
    for (const TensorSpec& t : tensors)
      if (t.role != Role::state) s.slot_places[i].places.push_back(cpu::place(t.bytes(), i % 2 == 0, cursor(t)));
  }
  s.memory.clear();
  s.read_only = cpu::SharedArena(read_only_bytes, cpu::Access::read_only, "kbh-inputs");
  s.read_write = cpu::SharedArena(read_write_bytes, cpu::Access::read_write, "kbh-outputs");

  Json message{{"op", "shape"}, {"threads", s.spec.threads}};
  message["dims"] = Json::array();
  for (const auto& [name, value] : shape.dims) message["dims"].push_back(Json::array({name, value}));
  message["tensors"] = Json::array();
  for (const TensorSpec& t : tensors)
    message["tensors"].push_back(
        {{"name", t.name}, {"role", name_of(t.role)}, {"dtype", static_cast<int>(t.dtype)}, {"shape", t.dims}});
  const auto describe = [](const std::vector<cpu::Placement>& places) {
    Json list = Json::array();
    for (const cpu::Placement& p : places)
      list.push_back({{"page_offset", p.page_offset}, {"pages_bytes", p.pages_bytes}, {"offset", p.offset}});
    return list;
  };
  message["states"] = Json::array();
  for (const auto& places : s.state_places) message["states"].push_back(describe(places));
  message["slots"] = Json::array();
  for (const auto& slot : s.slot_places)
    message["slots"].push_back({{"state", slot.state}, {"places", describe(slot.places)}});

  std::vector<std::vector<TensorView>> state_views;
  for (const auto& places : s.state_places) {
    std::vector<TensorView> views;
    std::size_t i = 0;
    for (const TensorSpec& t : s.tensors)
      if (t.role == Role::state) views.push_back({&t, s.read_only.data() + places[i++].offset});
    if (fill_state) fill_state(static_cast<int>(state_views.size()), views);
    state_views.push_back(std::move(views));
  }
  for (const auto& slot : s.slot_places) {
    SlotMemory memory;
    memory.tensors = state_views[static_cast<std::size_t>(slot.state)];
    std::size_t i = 0;
    for (const TensorSpec& t : s.tensors) {
      if (t.role == Role::state) continue;
      const cpu::SharedArena& arena = t.role == Role::output ? s.read_write : s.read_only;
      (t.role == Role::output ? memory.outputs : memory.tensors)
          .push_back({&t, arena.data() + slot.places[i++].offset});
    }
    s.memory.push_back(std::move(memory));
  }
  for (int i = 0; i < slots; ++i) poison(i);

  const int fds[] = {s.read_only.fd(), s.read_write.fd()};
  const auto mapped = s.ask(message, s.spec.limits.create_seconds, "mapping its buffers", &failure, fds);
  if (!mapped) return failure;
  s.addresses.clear();
  if (const auto found = mapped->find("addresses"); found != mapped->end()) try {
      s.addresses = found->get<std::vector<std::vector<std::uint64_t>>>();
    } catch (const Json::exception&) {  // a hostile worker's claim: messages get less precise, nothing else
    }

  if (auto refused = s.create({{"op", "create"}}, shape.text())) return refused;
  return s.arm();
}

std::optional<Failure> Session::recreate(int state) {
  if (auto left = impl_->leave()) return left;
  if (auto refused = impl_->create({{"op", "recreate"}, {"state", state}}, impl_->shape_text)) return refused;
  return impl_->arm();
}

int Session::state_of(int slot) const { return impl_->slot_places.at(static_cast<std::size_t>(slot)).state; }

const SlotMemory& Session::slot(int index) const { return impl_->memory.at(static_cast<std::size_t>(index)); }

void Session::poison(int slot) {
  Impl& s = *impl_;
  const auto index = static_cast<std::size_t>(slot);
  const std::uint64_t salt = random_word();
  s.salts[index] = salt;
  for (const TensorView& output : s.memory[index].outputs) kbh::poison(output, salt);
  std::size_t i = 0;
  for (const TensorSpec& t : s.tensors) {
    if (t.role == Role::state) continue;
    const cpu::SharedArena& arena = t.role == Role::output ? s.read_write : s.read_only;
    cpu::write_canary(arena.data(), s.slot_places[index].places[i++], salt);
  }
}

std::optional<Failure> Session::call(std::span<const int> slots, CallReport* report) {
  const double seconds = impl_->spec.limits.call_seconds * static_cast<double>(std::max<std::size_t>(1, slots.size()));
  return impl_->command(Command::calls, slots, seconds, report);
}

std::optional<Failure> Session::run(int slot) {
  const int slots[] = {slot};
  CallReport report;
  return call(slots, &report);
}

std::string Session::overrun(int slot) const {
  const Impl& s = *impl_;
  const auto index = static_cast<std::size_t>(slot);
  std::size_t i = 0;
  for (const TensorSpec& t : s.tensors) {
    if (t.role == Role::state) continue;
    const cpu::Placement& place = s.slot_places[index].places[i++];
    if (t.role == Role::output && !cpu::canary_intact(s.read_write.data(), place, s.salts[index])) return t.name;
  }
  return {};
}

/// Lets the worker run for `seconds` with no call, looking at its threads `looks` times, then stops it again. Returns
/// the largest share of looks at which one thread was running or waiting for a processor: 1 for a thread that works on,
/// also on a machine so busy that it gets little time.
double Session::Impl::linger(double seconds, int looks) {
  std::map<std::string, int> seen_running;
  resume();
  for (int look = 0; look < looks; ++look) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds / looks));
    for (const std::string& task : tasks_of(pid)) seen_running[task] += run_state_of(pid, task) == 'R' ? 1 : 0;
  }
  stop();
  int most = 0;
  for (const auto& [task, count] : seen_running) most = std::max(most, count);
  return static_cast<double>(most) / looks;
}

std::optional<Failure> Session::restless(int slot) {
  const int slots[] = {slot};
  const std::uint64_t before = impl_->outputs_fingerprint(slots);
  const double running = impl_->linger(kLingerSeconds, 1);
  if (impl_->outputs_fingerprint(slots) != before)
    return Failure{Failure::Kind::rejected,
                   "an output changed after kbh_run had returned",
                   "join or await every thread that writes before returning",
                   {}};
  if (running == 0 || impl_->linger(kSecondLookSeconds, kSecondLooks) < kBusyShare) return std::nullopt;
  return Failure{Failure::Kind::rejected,
                 fmt::format("a thread went on working after kbh_run had returned (seen running for {:.0f} ms)",
                             kSecondLookSeconds * 1e3),
                 "threads may outlive a call only asleep (a condition variable, not a spinning loop)",
                 {}};
}

std::string Session::log() const { return impl_->process.log(); }
bool Session::log_truncated() const { return impl_->process.log_truncated(); }
double Session::empty_call_us() const { return impl_->empty_us; }

}  // namespace kbh::host
