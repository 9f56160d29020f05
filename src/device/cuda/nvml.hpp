// What NVML says of a GPU: clocks, power, why the clocks are held back, who else computes there. libnvidia-ml comes
// with the driver and is opened at run time; every answer is optional, since containers and virtual machines hide many.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "device/cuda/device.hpp"

namespace kbh::cuda {

struct GpuState {
  std::optional<std::vector<std::string>> clock_limits;  // reasons, now: "sw_power_cap", "hw_thermal_slowdown" ...
  std::optional<double> power_w;
  std::optional<double> power_limit_w;
  std::optional<int> temperature_c;
  std::optional<int> sm_clock_mhz;
  std::optional<int> memory_clock_mhz;
  std::optional<std::vector<int>> compute_processes;  // ids, as the driver's own namespace counts them
  std::optional<bool> ecc;
  std::optional<bool> mig;
  std::optional<bool> persistence;
};

/// Of the device with this uuid; nothing in it where there is no NVML, or it does not know the device.
GpuState gpu_state(const std::string& uuid);

/// "unavailable" for what could not be read.
Json to_json(const GpuState& state);

/// The names of the bits set in nvmlDeviceGetCurrentClocksEventReasons' answer; unknown ones as "0x...".
std::vector<std::string> clock_limit_names(unsigned long long reasons);

/// The driver's own version, "580.159.04"; where NVML does not tell, the CUDA version that it serves, "CUDA 13.0".
std::string driver_text(const DeviceInfo& device);

/// The file that the loader took, or why there is none.
std::string nvml_library();

}  // namespace kbh::cuda
