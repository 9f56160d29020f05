#include "device/cuda/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <utility>

#include "device/cuda/library.hpp"

namespace kbh::cuda {
namespace {

// The few declarations of nvml.h that are needed: toolkits come without it.
using Result = int;
constexpr Result kSuccess = 0;
constexpr Result kInsufficientSize = 7;
constexpr int kGpuTemperature = 0;
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
using Handle = struct nvmlDevice_st*;

struct ProcessInfo {  // nvmlProcessInfo_t of the _v3 calls
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Nvml {
  void* library = nullptr;
  bool usable = false;
  std::string where;  // its file, or why it cannot be used

  Result (*init)() = nullptr;
  Result (*driver_version)(char*, unsigned) = nullptr;
  Result (*handle)(const char*, Handle*) = nullptr;
  Result (*clock_reasons)(Handle, unsigned long long*) = nullptr;
  Result (*power)(Handle, unsigned*) = nullptr;        // milliwatts
  Result (*power_limit)(Handle, unsigned*) = nullptr;  // milliwatts
  Result (*temperature)(Handle, int, unsigned*) = nullptr;
  Result (*clock)(Handle, int, unsigned*) = nullptr;
  Result (*processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
  Result (*ecc)(Handle, unsigned*, unsigned*) = nullptr;
  Result (*mig)(Handle, unsigned*, unsigned*) = nullptr;
  Result (*persistence)(Handle, unsigned*) = nullptr;
};

template <typename Function>
void look_up(const Nvml& nvml, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(nvml.library, name));
}

Nvml load() {
  Nvml n;
  n.library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!n.library) {
    n.where = fmt::format("none ({})", ::dlerror());
    return n;
  }
  look_up(n, n.init, "nvmlInit_v2");
  look_up(n, n.driver_version, "nvmlSystemGetDriverVersion");
  look_up(n, n.handle, "nvmlDeviceGetHandleByUUID");
  look_up(n, n.clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons");
  // Its name before driver 535.
  if (!n.clock_reasons) look_up(n, n.clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  look_up(n, n.power, "nvmlDeviceGetPowerUsage");
  look_up(n, n.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  look_up(n, n.temperature, "nvmlDeviceGetTemperature");
  look_up(n, n.clock, "nvmlDeviceGetClockInfo");
  look_up(n, n.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  look_up(n, n.ecc, "nvmlDeviceGetEccMode");
  look_up(n, n.mig, "nvmlDeviceGetMigMode");
  look_up(n, n.persistence, "nvmlDeviceGetPersistenceMode");
  const Result started = n.init ? n.init() : -1;
  n.usable = started == kSuccess && n.handle;
  n.where = n.usable ? file_of(n.init) : fmt::format("none (it does not start: {})", started);
  return n;
}

const Nvml& nvml() {
  static const Nvml loaded = load();
  return loaded;
}

/// One number that a function writes to its last argument; nothing where it is missing or refuses.
template <typename Value = unsigned, typename Function, typename... Arguments>
std::optional<Value> asked(Function function, Arguments... arguments) {
  Value value{};
  if (!function || function(arguments..., &value) != kSuccess) return std::nullopt;
  return value;
}

std::optional<bool> mode(Result (*function)(Handle, unsigned*, unsigned*), Handle device) {
  unsigned now = 0;
  unsigned after_a_restart = 0;
  if (!function || function(device, &now, &after_a_restart) != kSuccess) return std::nullopt;
  return now != 0;
}

std::optional<double> watts(std::optional<unsigned> milliwatts) {
  if (!milliwatts) return std::nullopt;
  return *milliwatts * 1e-3;
}

std::optional<int> whole(std::optional<unsigned> value) {
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<std::vector<int>> processes(Handle device) {
  const Nvml& n = nvml();
  if (!n.processes) return std::nullopt;
  std::vector<ProcessInfo> list(16);
  for (;;) {
    auto count = static_cast<unsigned>(list.size());
    const Result result = n.processes(device, &count, list.data());
    if (result == kInsufficientSize) {
      list.resize(2 * list.size());
      continue;
    }
    if (result != kSuccess) return std::nullopt;
    std::vector<int> ids;
    for (unsigned i = 0; i < count; ++i) ids.push_back(static_cast<int>(list[i].pid));
    return ids;
  }
}

template <typename Value>
Json or_unavailable(const std::optional<Value>& value) {
  return value ? Json(*value) : Json("unavailable");
}

}  // namespace

std::vector<std::string> clock_limit_names(unsigned long long reasons) {
  // nvmlClocksEventReason*; a device at rest is not held back.
  constexpr unsigned long long kIdle = 0x1;
  constexpr std::array<std::pair<unsigned long long, const char*>, 8> kNames = {{
      {0x2, "applications_clocks"},
      {0x4, "sw_power_cap"},
      {0x8, "hw_slowdown"},
      {0x10, "sync_boost"},
      {0x20, "sw_thermal_slowdown"},
      {0x40, "hw_thermal_slowdown"},
      {0x80, "hw_power_brake"},
      {0x100, "display_clocks"},
  }};
  std::vector<std::string> names;
  reasons &= ~kIdle;
  for (const auto& [bit, name] : kNames) {
    if (reasons & bit) names.emplace_back(name);
    reasons &= ~bit;
  }
  if (reasons) names.push_back(fmt::format("{:#x}", reasons));
  return names;
}

GpuState gpu_state(const std::string& uuid) {
  const Nvml& n = nvml();
  GpuState state;
  Handle device = nullptr;
  if (!n.usable || n.handle(uuid.c_str(), &device) != kSuccess) return state;
  if (const auto reasons = asked<unsigned long long>(n.clock_reasons, device))
    state.clock_limits = clock_limit_names(*reasons);
  state.power_w = watts(asked(n.power, device));
  state.power_limit_w = watts(asked(n.power_limit, device));
  state.temperature_c = whole(asked(n.temperature, device, kGpuTemperature));
  state.sm_clock_mhz = whole(asked(n.clock, device, kSmClock));
  state.memory_clock_mhz = whole(asked(n.clock, device, kMemoryClock));
  state.compute_processes = processes(device);
  state.ecc = mode(n.ecc, device);
  state.mig = mode(n.mig, device);
  if (const auto on = asked(n.persistence, device)) state.persistence = *on != 0;
  return state;
}

Json to_json(const GpuState& state) {
  return {{"clock_limits", or_unavailable(state.clock_limits)},
          {"power_w", or_unavailable(state.power_w)},
          {"power_limit_w", or_unavailable(state.power_limit_w)},
          {"temperature_c", or_unavailable(state.temperature_c)},
          {"sm_clock_mhz", or_unavailable(state.sm_clock_mhz)},
          {"memory_clock_mhz", or_unavailable(state.memory_clock_mhz)},
          {"compute_processes", or_unavailable(state.compute_processes)},
          {"ecc", or_unavailable(state.ecc)},
          {"mig", or_unavailable(state.mig)},
          {"persistence", or_unavailable(state.persistence)}};
}

std::string driver_text(const DeviceInfo& device) {
  const Nvml& n = nvml();
  std::array<char, 96> text{};
  if (n.usable && n.driver_version && n.driver_version(text.data(), text.size()) == kSuccess) return text.data();
  return fmt::format("CUDA {}.{}", device.driver_version / 1000, device.driver_version % 1000 / 10);
}

std::string nvml_library() { return nvml().where; }

}  // namespace kbh::cuda
