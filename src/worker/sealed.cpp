#include "worker/sealed.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/files.hpp"
#include "device/cuda/cold_timer.hpp"
#include "device/cuda/virtual_memory.hpp"
#include "lane/protocol.hpp"
#include "lane/sealed/launcher.hpp"

namespace kbh::worker {
namespace {

using sealed::BufferKind;
using sealed::Launcher;
using sealed::Phase;
using sealed::Plan;

// No result is made of it: a not-a-number in fp32, bf16 and fp16, an absurd integer.
constexpr unsigned kPoison = 0x7fa5fea5;

/// A buffer of the grader's as this process sees it.
struct Mapped {
  cuda::VirtualMemory memory;
  CUdeviceptr address = 0;  // of its first byte
};

/// One set of weights, and what the submission's prepare launches made of it.
struct State {
  std::vector<std::size_t> tensors;  // numbers of Mapped
  std::vector<cuda::VirtualMemory> prepared;
  std::unique_ptr<Launcher> prepare;
};

struct Slot {
  std::size_t state = 0;
  std::vector<std::size_t> inputs;
  std::vector<std::size_t> outputs;
  std::unique_ptr<Launcher> run;
};

struct Counters {
  cuda::DeviceMemory memory;
  std::size_t count = 0;
};

struct Scratch {
  cuda::DeviceMemory memory;
  std::size_t bytes = 0;
};

/// Everything that belongs to the shape in hand.
struct ShapeState {
  Plan plan;
  std::vector<Mapped> buffers;
  std::vector<State> states;
  std::vector<Slot> slots;
  std::map<std::size_t, Scratch> scratch;    // by number in the plan
  std::map<std::size_t, Counters> counters;  // likewise
};

/// A __device__ variable with the content that it had after loading.
struct Global {
  CUdeviceptr address = 0;
  std::vector<std::byte> image;
};

/// What the submission's launches came to, in words for the grader.
Json fault(CUresult status) { return {{"fault", cuda::text_of(status)}}; }

std::vector<std::size_t> numbers_in(const Json& list) { return list.get<std::vector<std::size_t>>(); }

class Worker {
 public:
  int serve() {
    protocol::send(protocol::kSocketFd, {{"hello", 1}});
    for (;;) {
      std::string problem;
      auto received = protocol::receive(protocol::kSocketFd, -1, &problem);
      if (!received) return 0;
      protocol::send(protocol::kSocketFd, answer(*received));
    }
  }

 private:
  Json answer(protocol::Received& received) {
    try {
      return handle(received);
    } catch (const Error& error) {
      return {{error.kind() == ErrorKind::usage ? "refused" : "error", error.what()}};
    }
  }

  Json handle(protocol::Received& received) {
    const Json& m = received.message;
    const std::string op = m.at("op");
    if (op == "load") return load(m);
    if (op == "memory") return map_memory(m, received.fds);
    if (op == "shape") return open_shape(m);
    if (op == "prepare") return prepare(m.at("state"));
    if (op == "call") return call(m);
    if (op == "sample") return sample(m);
    if (op == "batch") return batch(m);
    if (op == "close") return close_shape();
    fail(ErrorKind::internal, "unknown operation {}", op);
  }

  Json load(const Json& m) {
    const int device = m.at("device");
    context_ = std::make_unique<cuda::Context>(device);
    timer_ = std::make_unique<cuda::ColdTimer>(cuda::device_info(device), m.at("sweep_bytes").get<std::int64_t>());
    cubin_ = read_text(m.at("cubin").get<std::string>());
    load_module();
    for (const auto& [name, bytes] : m.at("globals").items()) keep_image(name, bytes.get<std::size_t>());
    const cuda::Floors floors = timer_->floors();
    return {{"ok", true}, {"nothing_us", floors.nothing_us}, {"empty_kernel_us", floors.empty_kernel_us}};
  }

  void load_module() {
    CUmodule module = nullptr;
    const CUresult loaded = cuda::driver().load_module(&module, cubin_.c_str());
    if (loaded != CUDA_SUCCESS)
      fail(ErrorKind::usage, "the driver does not load the device code: {}", cuda::text_of(loaded));
    module_ = cuda::Module(module);
  }

  void keep_image(const std::string& name, std::size_t bytes) {
    Global global;
    std::size_t size = 0;
    // Variables of internal linkage have no name for the driver: then the whole module is loaded anew before each call.
    if (cuda::driver().global(&global.address, &size, module_.get(), name.c_str()) != CUDA_SUCCESS || size != bytes) {
      reloads_ = true;
      return;
    }
    global.image.resize(bytes);
    copy_to_host(global.image.data(), global.address, bytes);
    globals_.push_back(std::move(global));
  }

  Json map_memory(const Json& m, const std::vector<UniqueFd>& fds) {
    if (!shape_) shape_.emplace();
    const Json& buffers = m.at("buffers");
    if (fds.size() != buffers.size())
      fail(ErrorKind::internal, "{} descriptors for {} buffers", fds.size(), buffers.size());
    for (std::size_t i = 0; i < fds.size(); ++i) {
      const Json& b = buffers[i];
      const auto access = b.at("writable").get<bool>() ? cuda::Access::read_write : cuda::Access::read_only;
      Mapped mapped;
      mapped.memory = cuda::VirtualMemory::import(context_->device(), fds[i].get(), b.at("size"), access);
      mapped.address = mapped.memory.address() + b.at("offset").get<std::size_t>();
      shape_->buffers.push_back(std::move(mapped));
    }
    return {{"ok", true}};
  }

  Json open_shape(const Json& m) {
    if (!shape_) shape_.emplace();
    shape_->plan = sealed::plan_from_json(m.at("plan"));
    allocate_buffers();
    for (const Json& tensors : m.at("states")) add_state(numbers_in(tensors));
    for (const Json& s : m.at("slots")) {
      Slot slot;
      slot.state = s.at("state");
      slot.inputs = numbers_in(s.at("inputs"));
      slot.outputs = numbers_in(s.at("outputs"));
      shape_->slots.push_back(std::move(slot));
    }
    make_launchers();
    return {{"ok", true}};
  }

  void allocate_buffers() {
    const auto& buffers = shape_->plan.buffers;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].kind == BufferKind::scratch)
        shape_->scratch[i] = {cuda::allocate(buffers[i].bytes), buffers[i].bytes};
      if (buffers[i].kind != BufferKind::counters) continue;
      shape_->counters[i] = {cuda::allocate(buffers[i].bytes), buffers[i].bytes / sizeof(std::uint32_t)};
      check(cuda::driver().set_bytes(shape_->counters[i].memory.get(), 0, buffers[i].bytes, stream()), "counters");
    }
    settle();
  }

  void add_state(std::vector<std::size_t> tensors) {
    State state;
    state.tensors = std::move(tensors);
    for (const auto& b : shape_->plan.buffers)
      state.prepared.push_back(b.kind == BufferKind::prepared ? cuda::VirtualMemory::create(context_->device(), b.bytes)
                                                              : cuda::VirtualMemory());
    shape_->states.push_back(std::move(state));
  }

  /// Addresses of the plan's buffers for a state, and for a slot where there is one.
  [[nodiscard]] sealed::Addresses addresses(const State& state, const Slot* slot) const {
    sealed::Addresses all;
    const auto& buffers = shape_->plan.buffers;
    const auto of = [&](const std::vector<std::size_t>& mapped, std::size_t index) {
      return shape_->buffers.at(mapped.at(index)).address;
    };
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      switch (buffers[i].kind) {
        case BufferKind::state:
          all.push_back(of(state.tensors, buffers[i].index));
          break;
        case BufferKind::input:
          all.push_back(slot ? of(slot->inputs, buffers[i].index) : 0);
          break;
        case BufferKind::output:
          all.push_back(slot ? of(slot->outputs, buffers[i].index) : 0);
          break;
        case BufferKind::scratch:
          all.push_back(shape_->scratch.at(i).memory.get());
          break;
        case BufferKind::counters:
          all.push_back(shape_->counters.at(i).memory.get());
          break;
        case BufferKind::prepared:
          all.push_back(state.prepared.at(i).address());
          break;
      }
    }
    return all;
  }

  void make_launchers() {
    for (State& state : shape_->states)
      state.prepare =
          std::make_unique<Launcher>(shape_->plan, Phase::prepare, module_.get(), addresses(state, nullptr));
    for (Slot& slot : shape_->slots)
      slot.run = std::make_unique<Launcher>(shape_->plan, Phase::run, module_.get(),
                                            addresses(shape_->states.at(slot.state), &slot));
  }

  /// Runs the prepare launches of one state; afterwards what they made is read-only.
  Json prepare(std::size_t number) {
    State& state = shape_->states.at(number);
    for (auto& memory : state.prepared)
      if (memory.size() > 0) {
        memory.allow(cuda::Access::read_write);
        check(cuda::driver().set_words(memory.address(), kPoison, memory.size() / 4, stream()), "poison");
      }
    restore_globals();
    state.prepare->queue(stream());
    CUresult status = CUDA_SUCCESS;
    if (!cuda::ColdTimer::wait(stream(), kPrepareSeconds, &status)) return {{"timed_out", true}};
    if (status != CUDA_SUCCESS) return fault(status);
    for (auto& memory : state.prepared)
      if (memory.size() > 0) memory.allow(cuda::Access::read_only);
    return {{"ok", true}};
  }

  /// Nothing of an earlier call is left in what the submission may write, outputs apart: the grader poisons those.
  void make_clean() {
    restore_globals();
    for (auto& [number, scratch] : shape_->scratch) {
      const std::size_t words = scratch.bytes / 4;
      check(cuda::driver().set_words(scratch.memory.get(), kPoison, words, stream()), "poison");
      check(cuda::driver().set_bytes(scratch.memory.get() + words * 4, 0xa5, scratch.bytes % 4, stream()), "poison");
    }
  }

  void restore_globals() {
    if (reloads_) {
      load_module();
      make_launchers();
      return;
    }
    for (const Global& global : globals_)
      check(cuda::driver().copy_to_device(global.address, global.image.data(), global.image.size(), stream()),
            "restoring a variable");
  }

  /// Nothing, or what is wrong with the counters after a call. They are zero again in any case.
  std::optional<Json> leftover() {
    for (auto& [number, counters] : shape_->counters) {
      std::vector<std::uint32_t> values(counters.count);
      copy_to_host(values.data(), counters.memory.get(), counters.count * sizeof(std::uint32_t));
      const auto wrong = std::find_if(values.begin(), values.end(), [](std::uint32_t v) { return v != 0; });
      if (wrong == values.end()) continue;
      return Json{{"counter", wrong - values.begin()}, {"value", *wrong}};
    }
    return std::nullopt;
  }

  Json call(const Json& m) {
    make_clean();
    const Slot& slot = shape_->slots.at(m.at("slot"));
    slot.run->queue(stream());
    CUresult status = CUDA_SUCCESS;
    if (!cuda::ColdTimer::wait(stream(), m.at("limit_seconds"), &status)) return {{"timed_out", true}};
    if (status != CUDA_SUCCESS) return fault(status);
    if (auto left = leftover()) return *left;
    return {{"ok", true}};
  }

  Json sample(const Json& m) {
    make_clean();
    settle();
    const Slot& slot = shape_->slots.at(m.at("slot"));
    return timed(m, [&](CUstream stream) { slot.run->queue(stream); });
  }

  /// Several calls between one pair of events, each on a slot of its own.
  Json batch(const Json& m) {
    make_clean();
    settle();
    const std::vector<std::size_t> slots = numbers_in(m.at("slots"));
    return timed(m, [&](CUstream stream) {
      for (const std::size_t slot : slots) shape_->slots.at(slot).run->queue(stream);
    });
  }

  Json timed(const Json& m, const std::function<void(CUstream)>& queue) {
    const auto flush = m.at("flush") == "dirty" ? cuda::Flush::dirty : cuda::Flush::clean;
    const cuda::TimedCall t = timer_->time(queue, flush, m.at("limit_seconds"));
    if (t.timed_out) return {{"timed_out", true}};
    if (t.status != CUDA_SUCCESS) return fault(t.status);
    if (auto left = leftover()) return *left;
    return {{"ok", true},
            {"event_us", t.event_us},
            {"host_us", t.host_us},
            {"clock_mhz", t.clock_mhz},
            {"gave_up", t.gave_up}};
  }

  Json close_shape() {
    settle();
    shape_.reset();
    return {{"ok", true}};
  }

  void copy_to_host(void* to, CUdeviceptr from, std::size_t bytes) {
    check(cuda::driver().copy_to_host(to, from, bytes, stream()), "copying to the host");
    settle();
  }

  void settle() { check(cuda::driver().synchronize_stream(stream()), "waiting for the device"); }
  [[nodiscard]] CUstream stream() const { return timer_->stream(); }
  static void check(CUresult result, const char* what) { cuda::check(result, what); }

  static constexpr double kPrepareSeconds = 30;

  std::unique_ptr<cuda::Context> context_;
  std::unique_ptr<cuda::ColdTimer> timer_;
  std::string cubin_;
  cuda::Module module_;
  std::vector<Global> globals_;
  bool reloads_ = false;
  std::optional<ShapeState> shape_;
};

}  // namespace

int serve_sealed() { return Worker().serve(); }

}  // namespace kbh::worker
