#include "inspect/plan_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace kbh::sealed {
namespace {

/// Bytes of an element of a CUtensorMapDataType, 0 for a number that is none. The numbers are those of cuda.h; formats
/// narrower than a byte (13 to 15) are left out: no tensor of the deck has them.
std::uint64_t element_bytes(std::int32_t type) {
  constexpr std::uint64_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type >= 0 && type < 13 ? kBytes[type] : 0;
}

std::string_view name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::state:
      return "state";
    case BufferKind::input:
      return "input";
    case BufferKind::output:
      return "output";
    case BufferKind::scratch:
      return "scratch";
    case BufferKind::counters:
      return "counters";
    case BufferKind::prepared:
      return "prepared";
  }
  return "?";
}

std::optional<Role> role_of(BufferKind kind) {
  if (kind == BufferKind::state) return Role::state;
  if (kind == BufferKind::input) return Role::input;
  if (kind == BufferKind::output) return Role::output;
  return std::nullopt;
}

const TensorSpec* tensor_of(const PlanBuffer& buffer, const std::vector<TensorSpec>& tensors) {
  std::uint32_t index = 0;
  for (const TensorSpec& t : tensors)
    if (t.role == role_of(buffer.kind) && index++ == buffer.index) return &t;
  return nullptr;
}

bool read_only(BufferKind kind, Phase phase) {
  if (kind == BufferKind::state || kind == BufferKind::input) return true;
  return kind == BufferKind::prepared && phase == Phase::run;
}

/// Preparing happens once per state, before there are inputs: it sees state and prepared data alone.
bool reachable(BufferKind kind, Phase phase) {
  return phase == Phase::run || kind == BufferKind::state || kind == BufferKind::prepared;
}

/// Ends the search for a fault at the first one.
struct Refusal {
  std::string why;
};

class Validator {
 public:
  Validator(const Plan& plan, const Problem& problem, const Shape& shape, const Cubin& cubin,
            const LaunchLimits& limits)
      : plan_(plan), problem_(problem), tensors_(problem.tensors(shape)), cubin_(cubin), limits_(limits) {}

  void run() {
    if (!plan_.refused.empty()) refuse("the plan itself gave up: {}", plan_.refused);
    check_cubin();
    check_buffers();
    for (std::size_t m = 0; m < plan_.tensor_maps.size(); ++m) check_map(m);
    std::int64_t timed = 0;
    std::int64_t untimed = 0;
    bool writes_output = false;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const PlanStep& step = plan_.steps[s];
      ++(step.phase == Phase::run ? timed : untimed);
      if (step.zero) {
        check_zero(step);
        continue;
      }
      check_launch(step, first_of_phase(s));
      for (const PlanArgument& a : step.launch.arguments) writes_output |= reaches_output(a);
    }
    if (timed == 0) refuse("the plan has no timed launch (plan.run)");
    if (timed > limits_.timed_launches)
      refuse("the plan has {} timed launches, expected at most {}", timed, limits_.timed_launches);
    if (untimed > limits_.prepare_launches)
      refuse("the plan prepares with {} launches, expected at most {}", untimed, limits_.prepare_launches);
    if (!writes_output) refuse("no launch is given an output to write");
  }

 private:
  template <typename... Args>
  [[noreturn]] static void refuse(fmt::format_string<Args...> format, Args&&... args) {
    throw Refusal{fmt::format(format, std::forward<Args>(args)...)};
  }

  void check_cubin() const {
    if (!cubin_.problems.empty()) refuse("the device code cannot be read: {}", cubin_.problems.front());
    for (const std::string& name : cubin_.undefined)
      if (!name.starts_with(".nv.")) refuse("device code calls {}: no malloc, printf or launches on the device", name);
    if (cubin_.writable_bytes > limits_.writable_globals)
      refuse("__device__ variables take {} bytes, expected at most {}: use plan.scratch", cubin_.writable_bytes,
             limits_.writable_globals);
  }

  void check_buffers() const {
    std::uint64_t scratch = 0;
    std::uint64_t prepared = 0;
    std::uint64_t state = 0;
    for (const TensorSpec& t : tensors_) state += t.role == Role::state ? t.bytes() : 0;
    for (const PlanBuffer& b : plan_.buffers) {
      if (role_of(b.kind)) {
        if (!tensor_of(b, tensors_)) refuse("the problem has no {} number {}", name_of(b.kind), b.index);
        continue;
      }
      std::uint64_t& sum = b.kind == BufferKind::prepared ? prepared : scratch;
      // Neither term is above the limit when they are added.
      const bool fits = b.bytes > 0 && b.bytes <= limits_.scratch_bytes;
      sum += fits ? b.bytes : 0;
      if (!fits || sum > limits_.scratch_bytes)
        refuse("{} of {} bytes: all together are at most {}", name_of(b.kind), b.bytes, limits_.scratch_bytes);
    }
    const double cap = problem_.prepared_cap * static_cast<double>(state);
    if (static_cast<double>(prepared) > cap)
      refuse("prepared data of {} bytes, expected at most {:.0f} ({:g} times the state)", prepared, cap,
             problem_.prepared_cap);
  }

  [[nodiscard]] std::uint64_t bytes_of(std::uint32_t buffer) const {
    const PlanBuffer& b = plan_.buffers[buffer];
    const TensorSpec* t = tensor_of(b, tensors_);
    return t ? t->bytes() : b.bytes;
  }

  [[nodiscard]] const PlanBuffer& buffer(std::uint32_t id) const {
    if (id >= plan_.buffers.size()) refuse("there is no buffer {}", id);
    return plan_.buffers[id];
  }

  /// dims x strides inside the buffer, and what cuTensorMapEncodeTiled demands beyond that is the driver's to say.
  void check_map(std::size_t number) const {
    const PlanTensorMap& m = plan_.tensor_maps[number];
    const PlanBuffer& mapped = buffer(m.buffer);
    const std::uint64_t element = element_bytes(m.type);
    if (element == 0) refuse("tensor map {}: element type {} is not known", number, m.type);
    if (m.dims.empty() || m.strides.size() + 1 != m.dims.size() || m.box.size() != m.dims.size() ||
        m.element_strides.size() != m.dims.size())
      refuse("tensor map {}: dims, strides and box do not belong together", number);
    const std::uint64_t bytes = bytes_of(m.buffer);
    if (m.offset % 16 != 0) refuse("tensor map {}: offset {} is no multiple of 16", number, m.offset);
    // Behind the last byte that it can reach.
    std::uint64_t end = m.offset;
    bool overflows = false;
    const auto add = [&](std::uint64_t stride, std::uint64_t count) {
      std::uint64_t product = 0;
      overflows |= __builtin_mul_overflow(stride, count, &product) || __builtin_add_overflow(end, product, &end);
    };
    add(element, m.dims[0]);
    for (std::size_t d = 0; d < m.dims.size(); ++d) {
      if (m.dims[d] == 0 || m.dims[d] > (std::uint64_t{1} << 32))
        refuse("tensor map {}: dim {} is {}, expected 1 to 2^32", number, d, m.dims[d]);
      if (m.box[d] == 0 || m.box[d] > 256)
        refuse("tensor map {}: box {} is {}, expected 1 to 256", number, d, m.box[d]);
      if (m.element_strides[d] == 0 || m.element_strides[d] > 8)
        refuse("tensor map {}: element stride {} is {}, expected 1 to 8", number, d, m.element_strides[d]);
      if (d == 0) continue;
      const std::uint64_t stride = m.strides[d - 1];
      if (stride % 16 != 0 || stride >= (std::uint64_t{1} << 40))
        refuse("tensor map {}: stride {} is {}, expected a multiple of 16 below 2^40", number, d, stride);
      add(stride, m.dims[d] - 1);
    }
    if (overflows || end > bytes)
      refuse("tensor map {}: reaches {} bytes into {} of {}", number, overflows ? "2^64" : fmt::format("{}", end),
             name_of(mapped.kind), bytes);
  }

  void check_zero(const PlanStep& step) const {
    const BufferKind kind = buffer(step.buffer).kind;
    if (step.phase != Phase::run || (kind != BufferKind::scratch && kind != BufferKind::counters))
      refuse("plan.zero clears scratch and counters, not {}", name_of(kind));
  }

  [[nodiscard]] bool first_of_phase(std::size_t step) const {
    for (std::size_t s = 0; s < step; ++s)
      if (plan_.steps[s].phase == plan_.steps[step].phase && !plan_.steps[s].zero) return false;
    return true;
  }

  void check_launch(const PlanStep& step, bool first) const {
    const PlanLaunch& l = step.launch;
    const CubinKernel* kernel = cubin_.find(l.kernel);
    if (!kernel) refuse("kernel {} is not in the device code", l.kernel);
    check_extents(l, *kernel);
    if (l.overlap && first) refuse("{}: overlap needs an earlier launch of this plan", l.kernel);
    if (l.overlap && l.cooperative) refuse("{}: a cooperative launch cannot overlap", l.kernel);
    if (l.arguments.size() != kernel->parameters.size())
      refuse("{}: {} arguments, the kernel has {} parameters", l.kernel, l.arguments.size(), kernel->parameters.size());
    for (std::size_t a = 0; a < l.arguments.size(); ++a) {
      if (l.arguments[a].size != kernel->parameters[a].size)
        refuse("{}: argument {} has {} bytes, the parameter {}", l.kernel, a, l.arguments[a].size,
               kernel->parameters[a].size);
      check_argument(step, a);
    }
  }

  void check_extents(const PlanLaunch& l, const CubinKernel& kernel) const {
    std::int64_t threads = 1;
    std::int64_t cluster = 1;
    const bool clustered = l.cluster[0] != 0 || l.cluster[1] != 0 || l.cluster[2] != 0;
    for (std::size_t d = 0; d < 3; ++d) {
      if (l.grid[d] < 1 || l.grid[d] > limits_.grid[d])
        refuse("{}: grid {} is {}, expected 1 to {}", l.kernel, d, l.grid[d], limits_.grid[d]);
      if (l.block[d] < 1 || l.block[d] > limits_.block[d])
        refuse("{}: block {} is {}, expected 1 to {}", l.kernel, d, l.block[d], limits_.block[d]);
      threads *= l.block[d];
      if (!clustered) continue;
      if (l.cluster[d] < 1 || l.cluster[d] > limits_.blocks_per_cluster || l.grid[d] % l.cluster[d] != 0)
        refuse("{}: cluster {} is {}, expected a divisor of the grid's {} up to {}", l.kernel, d, l.cluster[d],
               l.grid[d], limits_.blocks_per_cluster);
      cluster *= l.cluster[d];
    }
    if (threads > limits_.threads_per_block)
      refuse("{}: {} threads per block, expected at most {}", l.kernel, threads, limits_.threads_per_block);
    if (cluster > limits_.blocks_per_cluster)
      refuse("{}: {} blocks per cluster, expected at most {}", l.kernel, cluster, limits_.blocks_per_cluster);
    const auto fixed = static_cast<std::int64_t>(std::min<std::uint64_t>(kernel.static_shared, 1u << 30));
    if (l.shared < 0 || l.shared > limits_.shared - fixed)
      refuse("{}: {} bytes of dynamic shared memory beside {} static ones, expected at most {} together", l.kernel,
             l.shared, fixed, limits_.shared);
  }

  void check_argument(const PlanStep& step, std::size_t number) const {
    const PlanLaunch& l = step.launch;
    const PlanArgument& a = l.arguments[number];
    if (a.kind == ArgumentKind::value) return;
    if (a.kind == ArgumentKind::tensor_map) {
      if (a.id >= plan_.tensor_maps.size() || a.size != 128)
        refuse("{}: argument {} is no tensor map of this plan", l.kernel, number);
      check_reach(step, number, plan_.tensor_maps[a.id].buffer);
      return;
    }
    const PlanBuffer& b = buffer(a.id);
    check_reach(step, number, a.id);
    if (a.size != 8) refuse("{}: argument {} is a pointer of {} bytes", l.kernel, number, a.size);
    if (a.offset >= bytes_of(a.id))
      refuse("{}: argument {} points {} bytes into {} of {}", l.kernel, number, a.offset, name_of(b.kind),
             bytes_of(a.id));
    if (a.writable && read_only(b.kind, step.phase))
      refuse("{}: argument {} would write to {}, which is read-only", l.kernel, number, name_of(b.kind));
  }

  void check_reach(const PlanStep& step, std::size_t number, std::uint32_t id) const {
    const BufferKind kind = buffer(id).kind;
    if (!reachable(kind, step.phase))
      refuse("{}: argument {} is {}: preparing sees state and prepared data alone", step.launch.kernel, number,
             name_of(kind));
  }

  [[nodiscard]] bool reaches_output(const PlanArgument& a) const {
    if (a.kind == ArgumentKind::pointer) return a.writable && plan_.buffers[a.id].kind == BufferKind::output;
    return a.kind == ArgumentKind::tensor_map &&
           plan_.buffers[plan_.tensor_maps[a.id].buffer].kind == BufferKind::output;
  }

  const Plan& plan_;
  const Problem& problem_;
  const std::vector<TensorSpec> tensors_;
  const Cubin& cubin_;
  const LaunchLimits& limits_;
};

}  // namespace

std::vector<std::uint64_t> buffer_bytes(const Plan& plan, const std::vector<TensorSpec>& tensors) {
  std::vector<std::uint64_t> bytes;
  for (const PlanBuffer& b : plan.buffers) {
    const TensorSpec* t = tensor_of(b, tensors);
    bytes.push_back(t ? t->bytes() : b.bytes);
  }
  return bytes;
}

std::optional<std::string> refusal(const Plan& plan, const Problem& problem, const Shape& shape, const Cubin& cubin,
                                   const LaunchLimits& limits) {
  try {
    Validator(plan, problem, shape, cubin, limits).run();
  } catch (const Refusal& refusal) {
    return refusal.why;
  }
  return std::nullopt;
}

}  // namespace kbh::sealed
