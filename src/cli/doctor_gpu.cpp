// What kbh doctor says of GPUs.
#include "cli/findings.hpp"

#ifdef KBH_WITH_CUDA

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.hpp"
#include "deck/deck.hpp"
#include "device/cuda/device.hpp"
#include "device/cuda/library.hpp"
#include "device/cuda/nvml.hpp"

namespace kbh::cli {
namespace {

std::string deck_for(const std::string& gpu) {
  for (const std::string& name : deck_names()) {
    const Deck deck = find_deck(name);
    if (std::find(deck.gpus.begin(), deck.gpus.end(), gpu) != deck.gpus.end()) return "deck " + name;
  }
  return "no deck";
}

Finding device_finding(const cuda::DeviceInfo& device) {
  const std::string what =
      fmt::format("{}: {} ({}), sm_{}{}, {} multiprocessors, L2 {} MiB, memory {:.1f} GiB; {}", device.index,
                  device.name, device.uuid, device.major, device.minor, device.multiprocessors, device.l2_bytes >> 20,
                  static_cast<double>(device.memory_bytes) / (1 << 30), deck_for(device.name));
  auto others = cuda::gpu_state(device.uuid).compute_processes;
  if (!others) return {"gpu", Status::note, what + "; whether others compute on it cannot be read", ""};
  std::erase(*others, ::getpid());
  if (others->empty()) return {"gpu", Status::ok, what + "; free", ""};
  return {"gpu", Status::note, fmt::format("{}; processes that compute on it: {}", what, fmt::join(*others, ", ")),
          "wait for them, or choose another with --device N"};
}

Finding device_code_finding() {
  const fs::path folder = executable_path().parent_path() / "kbh-device";
  if (fs::exists(folder)) return {"device code", Status::ok, folder.string(), ""};
  return {"device code", Status::missing, folder.string() + " is not there", "build it: make all"};
}

}  // namespace

std::vector<Finding> gpu_findings() {
  const cuda::DriverState& state = cuda::driver_state();
  if (!state.usable) return {{"gpu", Status::note, state.why + ": CPU decks; others build and plan (--dry-run)", ""}};
  std::vector<Finding> findings;
  const std::vector<cuda::DeviceInfo> devices = cuda::devices();
  for (const cuda::DeviceInfo& device : devices) findings.push_back(device_finding(device));
  findings.push_back({"driver", Status::ok,
                      fmt::format("{}, {}; NVML: {}", cuda::driver_text(devices.front()),
                                  cuda::file_of(state.driver.init), cuda::nvml_library()),
                      ""});
  findings.push_back(device_code_finding());
  return findings;
}

}  // namespace kbh::cli

#else

namespace kbh::cli {

std::vector<Finding> gpu_findings() {
  return {{"gpu", Status::note, "this kbh was built without CUDA decks: those build and plan only (--dry-run)",
           "build it where the CUDA toolkit is"}};
}

}  // namespace kbh::cli

#endif
