#include "lane/sealed/session.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "device/cuda/device.hpp"
#include "device/cuda/virtual_memory.hpp"
#include "lane/poison.hpp"
#include "lane/protocol.hpp"
#include "lane/staging.hpp"
#include "lane/worker_process.hpp"

namespace kbh::sealed {
namespace {

constexpr std::size_t kAlignment = 256;  // what cudaMalloc promises
constexpr double kAnswerSeconds = 60;    // beyond what the device itself may take

std::uint64_t random_word() {
  std::uint64_t word = 0;
  const std::string bytes = random_bytes(sizeof word);
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

/// One tensor of one slot: device memory that the worker maps, and its mirror on the host.
struct Buffer {
  TensorSpec spec;
  cuda::VirtualMemory memory;
  std::size_t offset = 0;  // of the tensor in its memory
  cuda::HostMemory mirror;

  [[nodiscard]] CUdeviceptr address() const { return memory.address() + offset; }
  [[nodiscard]] std::size_t behind() const { return memory.size() - offset - spec.bytes(); }
  [[nodiscard]] TensorView view() const { return {&spec, static_cast<std::byte*>(mirror.data())}; }
};

/// The folder of the driver's library, for the worker's loader.
fs::path driver_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(cuda::driver().init), &info) == 0 || !info.dli_fname) return "/usr/lib";
  return fs::canonical(info.dli_fname).parent_path();
}

std::vector<fs::path> device_files() {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev", ignored))
    if (entry.path().filename().string().starts_with("nvidia")) files.push_back(entry.path());
  return files;
}

bool below_usr(const fs::path& path) { return path.string().starts_with("/usr/") || path.string().starts_with("/lib"); }

}  // namespace

struct Session::Impl {
  SessionSpec spec;
  cuda::Context context;
  cuda::Stream stream;
  Staging staging;
  WorkerProcess process;
  cuda::Floors floors;

  // the open shape
  std::vector<std::unique_ptr<Buffer>> buffers;  // states, then slots: the worker knows them by number
  struct Slot {
    int state = 0;
    std::vector<std::size_t> inputs;  // numbers of buffers
    std::vector<std::size_t> outputs;
  };
  std::vector<std::vector<std::size_t>> states;
  std::vector<Slot> slots;
  std::vector<SlotMemory> memory;
  // What stands around outputs: random, so that no kernel writes it by chance.
  cuda::HostMemory canary;
  mutable cuda::HostMemory seen;  // the same bytes read back

  explicit Impl(const SessionSpec& s)
      : spec(s),
        context(s.device),
        stream(cuda::make_stream()),
        staging("kbh-worker"),
        process(static_cast<std::size_t>(s.limits.log_kib) << 10) {}

  void start();
  std::optional<Json> ask(const Json& message, double seconds, std::string_view doing, std::optional<Failure>* failure,
                          std::span<const int> fds = {});
  std::optional<Failure> died(std::string_view doing);
  std::optional<Failure> failure_in(const Json& answer, std::string_view doing) const;
  std::size_t add_buffer(const TensorSpec& t, bool at_end);
  std::optional<Failure> hand_over();
  std::optional<Failure> prepare(int state);
  std::optional<Failure> timed(Json message, std::span<const int> which, Timed* timed);
  void upload(const Buffer& b) const;
  void upload_inputs(int slot) const;
  void download_outputs(int slot) const;
  void settle() const { cuda::check(cuda::driver().synchronize_stream(stream.get()), "waiting for the device"); }
};

void Session::Impl::start() {
  staging.add(spec.cubin, "submission.cubin");
  for (const auto& entry : fs::directory_iterator(executable_path().parent_path() / "kbh-device"))
    staging.add(entry.path(), fs::path("kbh-device") / entry.path().filename());
  sandbox::Spec box;
  box.level = spec.level;
  box.profile = sandbox::Profile::device;
  const sandbox::Bind home{staging.path(), "/kbh"};
  box.read_only = {home};
  const fs::path driver = driver_folder();
  if (!below_usr(driver)) box.read_only.push_back({driver, {}});
  box.devices = device_files();
  box.argv = {(sandbox::seen_at(home, spec.level) / "kbh-worker").string(), std::string(sandbox::name_of(spec.level)),
              "sealed"};
  box.environment = {"PATH=/usr/bin:/bin",
                     "LANG=C.UTF-8",
                     "HOME=/tmp",
                     "TMPDIR=/tmp",
                     "CUDA_CACHE_DISABLE=1",
                     "CUDA_MODULE_LOADING=EAGER",
                     "LD_LIBRARY_PATH=" + driver.string()};
  box.limits.processes = spec.limits.processes;
  box.limits.open_files = 4096;
  // No limit on addresses: the driver reserves as many as the device has memory, and more.
  process.start(std::move(box));
}

std::optional<Failure> Session::Impl::died(std::string_view doing) {
  const std::optional<int> status = process.wait(2);
  process.end();
  Failure failure{Failure::Kind::infra, fmt::format("the worker ended while {}", doing),
                  "this is ours; worker.log may say why", last_lines(process.log(), 3)};
  if (status) failure.details.push_back(fmt::format("wait status {:#x}", *status));
  return failure;
}

/// The worker's word that something went wrong, as a failure.
std::optional<Failure> Session::Impl::failure_in(const Json& answer, std::string_view doing) const {
  if (answer.contains("ok")) return std::nullopt;
  if (answer.contains("timed_out"))
    return Failure{Failure::Kind::timed_out,
                   fmt::format("the device was still at it after {:g} s while {}", spec.limits.call_seconds, doing),
                   "look for an endless loop, or blocks that wait for blocks which do not fit on the device together",
                   {}};
  if (answer.contains("fault"))
    return Failure{
        Failure::Kind::crashed,
        fmt::format("the device stopped with {} while {}", answer["fault"].get<std::string>(), doing),
        "a kernel read or wrote outside its buffers (unmapped memory lies beside them), wrote to an input or "
        "prepared data, or trapped; `kbh check` on odd sizes finds it",
        {}};
  if (answer.contains("counter"))
    return Failure{
        Failure::Kind::rejected,
        fmt::format("counters[{}] was left at {} after a call", answer["counter"].dump(), answer["value"].dump()),
        "every call must leave plan.counters as zeros: let the last block reset them",
        {}};
  if (answer.contains("refused"))
    return Failure{Failure::Kind::rejected,
                   answer["refused"].get<std::string>(),
                   "the plan passed our rules, but the driver knows better; docs/sealed.md",
                   {}};
  return Failure{Failure::Kind::infra,
                 fmt::format("the worker failed while {}: {}", doing, answer.dump().substr(0, 500)),
                 "this is ours; worker.log may say more",
                 {}};
}

std::optional<Json> Session::Impl::ask(const Json& message, double seconds, std::string_view doing,
                                       std::optional<Failure>* failure, std::span<const int> fds) {
  std::string problem;
  auto answer = process.ask(message, seconds, &problem, fds);
  if (!answer) {
    *failure = died(doing);
    return answer;
  }
  *failure = failure_in(*answer, doing);
  if (*failure && (*failure)->kind != Failure::Kind::rejected) process.end();  // its context is lost, or it hangs
  return answer;
}

std::size_t Session::Impl::add_buffer(const TensorSpec& t, bool at_end) {
  auto buffer = std::make_unique<Buffer>();
  buffer->spec = t;
  buffer->memory = cuda::VirtualMemory::create(context.device(), std::max<std::size_t>(t.bytes(), 1));
  if (at_end) buffer->offset = (buffer->memory.size() - t.bytes()) / kAlignment * kAlignment;
  buffer->mirror = cuda::HostMemory(std::max<std::size_t>(t.bytes(), 1));
  buffers.push_back(std::move(buffer));
  return buffers.size() - 1;
}

/// Exports every buffer to the worker, in portions.
std::optional<Failure> Session::Impl::hand_over() {
  for (std::size_t first = 0; first < buffers.size(); first += protocol::kMaxFds) {
    Json message{{"op", "memory"}, {"buffers", Json::array()}};
    std::vector<UniqueFd> owned;
    std::vector<int> fds;
    for (std::size_t i = first; i < std::min(buffers.size(), first + protocol::kMaxFds); ++i) {
      const Buffer& b = *buffers[i];
      message["buffers"].push_back(
          {{"size", b.memory.size()}, {"offset", b.offset}, {"writable", b.spec.role == Role::output}});
      owned.push_back(b.memory.export_fd());
      fds.push_back(owned.back().get());
    }
    std::optional<Failure> failure;
    ask(message, kAnswerSeconds, "mapping its buffers", &failure, fds);
    if (failure) return failure;
  }
  return std::nullopt;
}

void Session::Impl::upload(const Buffer& b) const {
  cuda::check(cuda::driver().copy_to_device(b.address(), b.mirror.data(), b.spec.bytes(), stream.get()),
              "copying to the device");
}

void Session::Impl::upload_inputs(int slot) const {
  for (const std::size_t i : slots[static_cast<std::size_t>(slot)].inputs) upload(*buffers[i]);
  settle();
}

void Session::Impl::download_outputs(int slot) const {
  for (const std::size_t i : slots[static_cast<std::size_t>(slot)].outputs) {
    const Buffer& b = *buffers[i];
    cuda::check(cuda::driver().copy_to_host(b.mirror.data(), b.address(), b.spec.bytes(), stream.get()),
                "copying from the device");
  }
  settle();
}

std::optional<Failure> Session::Impl::prepare(int state) {
  for (const std::size_t i : states[static_cast<std::size_t>(state)]) upload(*buffers[i]);
  settle();
  std::optional<Failure> failure;
  ask({{"op", "prepare"}, {"state", state}}, spec.limits.create_seconds + kAnswerSeconds, "running plan.prepare",
      &failure);
  return failure;
}

Session::Session(const SessionSpec& spec) : impl_(std::make_unique<Impl>(spec)) { impl_->start(); }

Session::~Session() = default;

std::optional<Failure> Session::load() {
  Impl& s = *impl_;
  const sandbox::Bind home{s.staging.path(), "/kbh"};
  Json globals = Json::object();
  for (const auto& [name, bytes] : s.spec.writable_globals) globals[name] = bytes;
  std::optional<Failure> failure;
  const auto answer = s.ask({{"op", "load"},
                             {"cubin", (sandbox::seen_at(home, s.spec.level) / "submission.cubin").string()},
                             {"device", s.spec.device},
                             {"sweep_bytes", s.spec.sweep_bytes},
                             {"globals", globals}},
                            kAnswerSeconds, "loading the device code", &failure);
  if (!failure) s.floors = {answer->at("nothing_us"), answer->at("empty_kernel_us")};
  return failure;
}

std::optional<Failure> Session::open_shape(const Shape& shape, const std::vector<TensorSpec>& tensors, int slots,
                                           int states, const FillState& fill_state) {
  Impl& s = *impl_;
  std::optional<Failure> failure;
  if (!s.slots.empty()) {
    s.ask({{"op", "close"}}, kAnswerSeconds, "closing a shape", &failure);
    if (failure) return failure;
  }
  s.memory.clear();
  s.buffers.clear();
  s.states.assign(static_cast<std::size_t>(states), {});
  s.slots.assign(static_cast<std::size_t>(slots), {});
  for (std::size_t i = 0; i < s.states.size(); ++i)
    for (const TensorSpec& t : tensors)
      if (t.role == Role::state) s.states[i].push_back(s.add_buffer(t, i % 2 == 0));
  for (std::size_t i = 0; i < s.slots.size(); ++i) {
    s.slots[i].state = static_cast<int>(i) % states;
    for (const TensorSpec& t : tensors)
      if (t.role != Role::state)
        (t.role == Role::output ? s.slots[i].outputs : s.slots[i].inputs).push_back(s.add_buffer(t, i % 2 == 0));
  }

  std::size_t most = 1;  // bytes around one output
  for (const auto& b : s.buffers) most = std::max(most, b->memory.size() - b->spec.bytes());
  s.canary = cuda::HostMemory(most);
  s.seen = cuda::HostMemory(most);
  const std::string pattern = random_bytes(most);
  std::memcpy(s.canary.data(), pattern.data(), most);

  std::vector<std::vector<TensorView>> state_views;
  for (const auto& numbers : s.states) {
    std::vector<TensorView> views;
    for (const std::size_t i : numbers) views.push_back(s.buffers[i]->view());
    if (fill_state) fill_state(static_cast<int>(state_views.size()), views);
    state_views.push_back(std::move(views));
  }
  for (const auto& slot : s.slots) {
    SlotMemory memory;
    memory.tensors = state_views[static_cast<std::size_t>(slot.state)];
    for (const std::size_t i : slot.inputs) memory.tensors.push_back(s.buffers[i]->view());
    for (const std::size_t i : slot.outputs) memory.outputs.push_back(s.buffers[i]->view());
    s.memory.push_back(std::move(memory));
  }
  if (auto refused = s.hand_over()) return refused;
  for (int i = 0; i < slots; ++i) poison(i);

  Json message{{"op", "shape"}, {"plan", to_json(s.spec.plan_of(shape))}, {"states", s.states}};
  message["slots"] = Json::array();
  for (const auto& slot : s.slots)
    message["slots"].push_back({{"state", slot.state}, {"inputs", slot.inputs}, {"outputs", slot.outputs}});
  s.ask(message, kAnswerSeconds, "making the plan ready for " + shape.text(), &failure);
  if (failure) return failure;
  for (int i = 0; i < states; ++i)
    if (auto refused = s.prepare(i)) return refused;
  return std::nullopt;
}

const SlotMemory& Session::slot(int index) const { return impl_->memory.at(static_cast<std::size_t>(index)); }

int Session::state_of(int slot) const { return impl_->slots.at(static_cast<std::size_t>(slot)).state; }

std::optional<Failure> Session::recreate(int state) { return impl_->prepare(state); }

void Session::poison(int slot) {
  Impl& s = *impl_;
  const std::uint64_t salt = random_word();
  const cuda::Driver& d = cuda::driver();
  for (const std::size_t i : s.slots[static_cast<std::size_t>(slot)].outputs) {
    const Buffer& b = *s.buffers[i];
    kbh::poison(b.view(), salt);
    s.upload(b);
    const auto* canary = static_cast<const std::byte*>(s.canary.data());
    cuda::check(d.copy_to_device(b.memory.address(), canary, b.offset, s.stream.get()), "writing a canary");
    cuda::check(d.copy_to_device(b.address() + b.spec.bytes(), canary + b.offset, b.behind(), s.stream.get()),
                "writing a canary");
  }
  s.settle();
}

std::string Session::overrun(int slot) const {
  const Impl& s = *impl_;
  const cuda::Driver& d = cuda::driver();
  for (const std::size_t i : s.slots[static_cast<std::size_t>(slot)].outputs) {
    const Buffer& b = *s.buffers[i];
    auto* seen = static_cast<std::byte*>(s.seen.data());
    cuda::check(d.copy_to_host(seen, b.memory.address(), b.offset, s.stream.get()), "reading a canary");
    cuda::check(d.copy_to_host(seen + b.offset, b.address() + b.spec.bytes(), b.behind(), s.stream.get()),
                "reading a canary");
    s.settle();
    if (std::memcmp(seen, s.canary.data(), b.offset + b.behind()) != 0) return b.spec.name;
  }
  return {};
}

std::optional<Failure> Session::run(int slot) {
  Impl& s = *impl_;
  s.upload_inputs(slot);
  std::optional<Failure> failure;
  s.ask({{"op", "call"}, {"slot", slot}, {"limit_seconds", s.spec.limits.call_seconds}},
        s.spec.limits.call_seconds + kAnswerSeconds, "running a call", &failure);
  if (!failure) s.download_outputs(slot);
  return failure;
}

std::optional<Failure> Session::Impl::timed(Json message, std::span<const int> which, Timed* timed) {
  for (const int slot : which) upload_inputs(slot);
  message["limit_seconds"] = spec.limits.call_seconds;
  std::optional<Failure> failure;
  const auto answer = ask(message, spec.limits.call_seconds + kAnswerSeconds, "running a timed call", &failure);
  if (failure) return failure;
  timed->event_us = answer->at("event_us");
  timed->host_us = answer->at("host_us");
  timed->clock_mhz = answer->at("clock_mhz");
  timed->gave_up = answer->at("gave_up");
  for (const int slot : which) download_outputs(slot);
  return std::nullopt;
}

std::optional<Failure> Session::sample(int slot, cuda::Flush flush, Timed* timed) {
  const int slots[] = {slot};
  return impl_->timed({{"op", "sample"}, {"slot", slot}, {"flush", flush == cuda::Flush::dirty ? "dirty" : "clean"}},
                      slots, timed);
}

std::optional<Failure> Session::batch(std::span<const int> slots, Timed* timed) {
  return impl_->timed({{"op", "batch"}, {"slots", slots}, {"flush", "clean"}}, slots, timed);
}

cuda::Floors Session::floors() const { return impl_->floors; }

std::optional<Failure> Session::restless(int) { return std::nullopt; }

std::string Session::log() const { return impl_->process.log(); }
bool Session::log_truncated() const { return impl_->process.log_truncated(); }

}  // namespace kbh::sealed
