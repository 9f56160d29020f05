// kbh-planner: runs a sealed submission's plan function and writes what it asked for.
//
// The shared object that nvcc made is loaded here, so foreign host code runs in this process: it is sandboxed, has no
// GPU and no CUDA library, and exists before any data does. What it writes is untrusted; the grader parses and checks
// it. The few functions of the CUDA runtime that nvcc's host code calls are defined here: registration gives us the map
// from a kernel's address to its mangled name, launching is an error.
#include <dlfcn.h>
#include <kbh/sealed_abi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "lane/sealed/plan.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh::sealed {
namespace {

std::map<const void*, std::string>& kernel_names() {
  static std::map<const void*, std::string> names;
  return names;
}

std::string& output_path() {
  static std::string path;
  return path;
}

/// What the grader gets. Plans of shapes after a refusal are missing.
[[noreturn]] void write_and_end(const Json& plans) {
  std::ofstream(output_path(), std::ios::binary) << plans.dump(-1, ' ', false, Json::error_handler_t::replace);
  _exit(0);  // no destructor of foreign code gets a say
}

/// Collects what one call of the plan function asks for.
class Collector {
 public:
  /// `former`: the plans of the shapes before.
  explicit Collector(Json& former) : former_(former) {}

  Plan plan;

  kbh_sealed_sink sink() {
    return {
        KBH_SEALED_ABI,
        this,
        [](void* self, std::int32_t kind, std::uint32_t index, std::uint64_t bytes) {
          return static_cast<Collector*>(self)->buffer(kind, index, bytes);
        },
        [](void* self, const kbh_sealed_tensor_map* map) { return static_cast<Collector*>(self)->tensor_map(*map); },
        [](void* self, std::int32_t phase, const void* kernel, const kbh_sealed_launch* launch,
           const kbh_sealed_argument* arguments,
           std::uint32_t count) { static_cast<Collector*>(self)->launch(phase, kernel, *launch, arguments, count); },
        [](void* self, std::uint32_t buffer) { static_cast<Collector*>(self)->zero(buffer); },
        [](void* self, const char* why) { static_cast<Collector*>(self)->refuse(why); }};
  }

 private:
  // The plan function is not to go on, and an exception must not cross code that another compiler may have made.
  [[noreturn]] void refuse(const std::string& why) {
    plan.refused = why.empty() ? "no reason given" : why.substr(0, 1000);
    former_.push_back(to_json(plan));
    write_and_end(former_);
  }

  std::uint32_t buffer(std::int32_t kind, std::uint32_t index, std::uint64_t bytes) {
    plan.buffers.push_back({static_cast<BufferKind>(kind), index, bytes});
    return static_cast<std::uint32_t>(plan.buffers.size() - 1);
  }

  std::uint32_t tensor_map(const kbh_sealed_tensor_map& m) {
    const auto rank = static_cast<std::size_t>(std::min(5, std::max(1, m.rank)));
    PlanTensorMap map{.buffer = m.buffer, .offset = m.offset, .type = m.type};
    map.dims.assign(m.dims, m.dims + rank);
    map.strides.assign(m.strides, m.strides + rank - 1);
    map.box.assign(m.box, m.box + rank);
    map.element_strides.assign(m.element_strides, m.element_strides + rank);
    map.interleave = m.interleave;
    map.swizzle = m.swizzle;
    map.promotion = m.promotion;
    map.fill = m.fill;
    plan.tensor_maps.push_back(map);
    return static_cast<std::uint32_t>(plan.tensor_maps.size() - 1);
  }

  void launch(std::int32_t phase, const void* kernel, const kbh_sealed_launch& l, const kbh_sealed_argument* arguments,
              std::uint32_t count) {
    const auto name = kernel_names().find(kernel);
    if (name == kernel_names().end()) refuse("a launch of something that is no kernel of this file");
    PlanStep step;
    step.phase = static_cast<Phase>(phase);
    step.launch.kernel = name->second;
    for (std::size_t d = 0; d < 3; ++d) {
      step.launch.grid[d] = l.grid[d];
      step.launch.block[d] = l.block[d];
      step.launch.cluster[d] = l.cluster[d];
    }
    step.launch.shared = l.shared;
    step.launch.cooperative = l.cooperative != 0;
    step.launch.overlap = l.overlap != 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const kbh_sealed_argument& a = arguments[i];
      PlanArgument argument{static_cast<ArgumentKind>(a.kind), a.id, a.offset, a.size, a.writable != 0, {}};
      if (a.bytes) argument.bytes.assign(static_cast<const char*>(a.bytes), a.size);
      step.launch.arguments.push_back(std::move(argument));
    }
    plan.steps.push_back(std::move(step));
  }

  void zero(std::uint32_t buffer) {
    PlanStep step;
    step.zero = true;
    step.buffer = buffer;
    plan.steps.push_back(step);
  }

  Json& former_;
};

using PlanFunction = void (*)(const kbh_sealed_sink*, const kbh_sealed_dim*, std::int32_t);

void add_plan(PlanFunction function, const Json& shape, Json& plans) {
  std::vector<std::string> names;
  std::vector<kbh_sealed_dim> dims;
  for (const auto& dim : shape) names.push_back(dim.at(0));
  for (std::size_t i = 0; i < names.size(); ++i) dims.push_back({names[i].c_str(), shape[i].at(1)});
  Collector collector(plans);
  const kbh_sealed_sink sink = collector.sink();
  function(&sink, dims.data(), static_cast<std::int32_t>(dims.size()));
  plans.push_back(to_json(collector.plan));
}

[[noreturn]] void no_device(const char* what) {
  std::fprintf(stderr, "%s: a plan describes launches, it does not make them (plan.run)\n", what);
  std::exit(3);
}

}  // namespace

// ---- the CUDA runtime as far as nvcc's host code needs it
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming,*-avoid-non-const-global-variables)
#define KBH_RUNTIME extern "C" __attribute__((visibility("default")))

KBH_RUNTIME void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
KBH_RUNTIME void __cudaRegisterFatBinaryEnd(void**) {}
KBH_RUNTIME void __cudaUnregisterFatBinary(void**) {}
KBH_RUNTIME void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*,
                                        void*, int*) {
  if (name) kernel_names()[host] = std::string(name, strnlen(name, 4096));
}
KBH_RUNTIME void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
KBH_RUNTIME int __cudaInitModule(void**) { return 1; }
KBH_RUNTIME unsigned __cudaPushCallConfiguration(...) { no_device("a launch with <<< >>>"); }
KBH_RUNTIME int __cudaPopCallConfiguration(...) { no_device("a launch with <<< >>>"); }
KBH_RUNTIME int __cudaLaunchKernel(...) { no_device("a call of a kernel"); }
KBH_RUNTIME int __cudaGetKernel(...) { no_device("a call of a kernel"); }
KBH_RUNTIME int cudaLaunchKernel(...) { no_device("cudaLaunchKernel"); }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming,*-avoid-non-const-global-variables)

namespace {

/// kbh-planner LEVEL OBJECT OUTPUT SHAPES, shapes as a list of [[name, value], ...]. Started by kbh only.
int serve(int argc, char** argv) {
  const auto level = argc == 5 ? sandbox::level_from(argv[1]) : std::nullopt;
  if (!level) {
    std::fprintf(stderr, "kbh-planner is started by kbh; it is no command of its own\n");
    return 2;
  }
  sandbox::restrict_self(*level, sandbox::Profile::worker);
  output_path() = argv[3];
  const Json shapes = Json::parse(argv[4]);
  void* object = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    std::fprintf(stderr, "the built object cannot be loaded: %s\n", dlerror());
    return 1;
  }
  const auto function = reinterpret_cast<PlanFunction>(dlsym(object, "kbh_sealed_plan"));
  if (!function) {
    std::fprintf(stderr, "there is no plan: define KBH_SEALED_PLAN(shape, plan) { ... } (include/kbh/sealed.h)\n");
    return 1;
  }
  Json plans = Json::array();
  for (const Json& shape : shapes) add_plan(function, shape, plans);
  write_and_end(plans);
}

}  // namespace
}  // namespace kbh::sealed

int main(int argc, char** argv) { return kbh::sealed::serve(argc, argv); }
