#include "worker/worker.hpp"

#include <kbh/host.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "lane/host/library.hpp"
#include "lane/protocol.hpp"
#include "worker/mapping.hpp"

namespace kbh::worker {
namespace {

using protocol::Control;

Control* g_control = nullptr;  // for the fault handler  NOLINT(*-avoid-non-const-global-variables)

/// Leaves what happened for the grader, then dies of the same signal.
void on_fault(int signal, siginfo_t* info, void*) {
  g_control->fault_address = reinterpret_cast<std::uint64_t>(info->si_addr);
  g_control->fault_signal = signal;
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void install_fault_handler() {
  static std::byte stack[1 << 16];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(signal, &action, nullptr);
}

/// One tensor of one slot as the submission sees it.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int32_t dtype = 0;
  bool writable = false;

  [[nodiscard]] kbh_tensor at(void* data) const {
    return {.data = data,
            .device = KBH_CPU,
            .device_id = 0,
            .ndim = static_cast<std::int32_t>(shape.size()),
            .dtype = dtype,
            .shape = shape.data(),
            .strides = strides.data(),
            .flags = writable ? 0u : static_cast<std::uint64_t>(KBH_READ_ONLY),
            .name = name.c_str()};
  }
};

struct Slot {
  std::size_t instance = 0;
  std::vector<kbh_tensor> inputs;
  std::vector<kbh_tensor> outputs;
};

/// One set of weights and the submission's object made from it. Problems without state have one, with no tensors.
struct Instance {
  std::vector<kbh_tensor> state;
  void* self = nullptr;
  bool created = false;
};

/// Everything that belongs to the shape in hand.
struct ShapeState {
  std::vector<std::pair<std::string, std::int64_t>> dims;
  std::vector<kbh_dim> dim_table;
  std::vector<std::unique_ptr<Tensor>> state;    // stable addresses: kbh_tensor points into them
  std::vector<std::unique_ptr<Tensor>> tensors;  // inputs and outputs
  std::vector<GuardedMapping> mappings;
  std::vector<Instance> instances;
  std::vector<Slot> slots;
};

class Worker {
 public:
  int serve() {
    void* page = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, protocol::kControlFd, 0);
    if (page == MAP_FAILED) return 70;
    ::close(protocol::kControlFd);
    control_ = static_cast<Control*>(page);
    g_control = control_;
    install_fault_handler();
    reply({{"hello", 1}});
    for (;;) {
      std::string problem;
      auto received = protocol::receive(protocol::kSocketFd, -1, &problem);
      if (!received) return 0;
      handle(*received);
    }
  }

 private:
  void handle(protocol::Received& received) {
    const std::string op = received.message.at("op");
    if (op == "load") return load(received.message);
    if (op == "shape") return open_shape(received);
    if (op == "create") return create();
    if (op == "recreate") return recreate(received.message.at("state"));
    if (op == "close") return close_shape();
    if (op == "arm") return answer_calls();
    reply({{"error", "unknown operation " + op}});
  }

  static void reply(const Json& message) { protocol::send(protocol::kSocketFd, message); }

  void load(const Json& message) {
    std::string problem;
    library_ = host::load_library(message.at("path"), &problem);
    if (library_.run) return reply({{"ok", true}});
    reply({{"error", problem}});
  }

  void open_shape(protocol::Received& received) {
    shape_.emplace();
    const Json& m = received.message;
    for (const auto& d : m.at("dims")) shape_->dims.emplace_back(d.at(0), d.at(1));
    for (const auto& [name, value] : shape_->dims) shape_->dim_table.push_back({name.c_str(), value});
    threads_ = m.at("threads");
    for (const auto& t : m.at("tensors"))
      (t.at("role") == "state" ? shape_->state : shape_->tensors).push_back(read_tensor(t));
    Json addresses = Json::array();
    for (const auto& places : m.at("states")) addresses.push_back(map_state(places, received.fds));
    for (const auto& slot : m.at("slots")) addresses.push_back(map_slot(slot, received.fds));
    reply({{"ok", true}, {"addresses", addresses}});
  }

  static std::unique_ptr<Tensor> read_tensor(const Json& t) {
    auto tensor = std::make_unique<Tensor>();
    tensor->name = t.at("name");
    tensor->dtype = t.at("dtype");
    tensor->shape = t.at("shape").get<std::vector<std::int64_t>>();
    tensor->writable = t.at("role") == "output";
    tensor->strides.resize(tensor->shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = tensor->shape.size(); i-- > 0;) {
      tensor->strides[i] = stride;
      stride *= tensor->shape[i];
    }
    return tensor;
  }

  /// Maps one tensor at its place; `addresses` tells the grader where, so that it can name the buffer of a fault.
  kbh_tensor map(const Tensor& tensor, const Json& place, const std::vector<UniqueFd>& fds, Json& addresses) {
    const std::size_t page_offset = place.at("page_offset");
    const std::size_t offset = place.at("offset");
    const int fd = fds.at(tensor.writable ? 1 : 0).get();
    shape_->mappings.emplace_back(fd, page_offset, place.at("pages_bytes").get<std::size_t>(), tensor.writable);
    std::byte* data = shape_->mappings.back().data() + (offset - page_offset);
    addresses.push_back(reinterpret_cast<std::uint64_t>(data));
    return tensor.at(data);
  }

  Json map_state(const Json& places, const std::vector<UniqueFd>& fds) {
    Json addresses = Json::array();
    Instance instance;
    for (std::size_t i = 0; i < places.size(); ++i)
      instance.state.push_back(map(*shape_->state.at(i), places[i], fds, addresses));
    shape_->instances.push_back(std::move(instance));
    return addresses;
  }

  Json map_slot(const Json& description, const std::vector<UniqueFd>& fds) {
    Json addresses = Json::array();
    Slot slot;
    slot.instance = description.at("state");
    const Json& places = description.at("places");
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Tensor& tensor = *shape_->tensors.at(i);
      (tensor.writable ? slot.outputs : slot.inputs).push_back(map(tensor, places[i], fds, addresses));
    }
    shape_->slots.push_back(std::move(slot));
    return addresses;
  }

  void create() {
    for (Instance& instance : shape_->instances) {
      const int status = create(instance);
      if (status != 0) return reply({{"status", status}});
    }
    reply({{"status", 0}});
  }

  void recreate(std::size_t state) {
    Instance& instance = shape_->instances.at(state);
    destroy(instance);
    reply({{"status", create(instance)}});
  }

  void destroy(Instance& instance) noexcept {
    if (instance.created && library_.destroy) library_.destroy(instance.self);
    instance.created = false;
    instance.self = nullptr;
  }

  // noexcept: an exception of the submission ends in std::terminate, which prints its type and text and aborts.
  int create(Instance& instance) noexcept {
    if (!library_.create) return 0;
    const kbh_context context{.abi = KBH_HOST_ABI,
                              .device = KBH_CPU,
                              .threads = threads_,
                              .n_dims = static_cast<std::int32_t>(shape_->dim_table.size()),
                              .dims = shape_->dim_table.data(),
                              .state = instance.state.data(),
                              .n_state = static_cast<std::int32_t>(instance.state.size())};
    const int status = library_.create(&context, &instance.self);
    instance.created = status == 0;
    return status;
  }

  void close_shape() noexcept {
    if (shape_)
      for (Instance& instance : shape_->instances) destroy(instance);
    shape_.reset();
    reply({{"ok", true}});
  }

  /// Serves the futex until told to leave. No allocation, no system call but the wake-up between calls.
  void answer_calls() {
    reply({{"ok", true}});
    std::uint32_t seen = control_->done.load(std::memory_order_acquire);
    for (;;) {
      std::uint32_t go = control_->go.load(std::memory_order_acquire);
      while (go == seen) {
        protocol::futex_wait(&control_->go, seen, 3600);
        go = control_->go.load(std::memory_order_acquire);
      }
      seen = go;
      const protocol::Command command = control_->command;
      if (command == protocol::Command::calls) run_slots();
      control_->done.store(seen, std::memory_order_release);
      protocol::futex_wake(&control_->done);
      if (command == protocol::Command::leave) return;
    }
  }

  void run_slots() noexcept {
    for (std::uint32_t i = 0; i < control_->count; ++i) {
      const Slot& slot = shape_->slots[control_->slots[i]];
      control_->begin_ns[i] = protocol::now_ns();
      const int status = library_.run(shape_->instances[slot.instance].self, slot.inputs.data(),
                                      static_cast<std::int32_t>(slot.inputs.size()), slot.outputs.data(),
                                      static_cast<std::int32_t>(slot.outputs.size()), nullptr);
      control_->end_ns[i] = protocol::now_ns();
      control_->status[i] = status;
    }
  }

  Control* control_ = nullptr;
  host::Library library_;
  std::optional<ShapeState> shape_;
  int threads_ = 1;
};

}  // namespace

int serve() { return Worker().serve(); }

}  // namespace kbh::worker
