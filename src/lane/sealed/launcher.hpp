// A plan made ready for one slot: addresses in place of names, tensor maps encoded. Runs in the worker.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda/driver.hpp"
#include "lane/sealed/plan.hpp"

namespace kbh::sealed {

/// Where the buffers of a plan lie for one slot, in the order of Plan::buffers.
using Addresses = std::vector<CUdeviceptr>;

/// Launches of one phase, to be queued again and again.
class Launcher {
 public:
  /// Error(usage) when the driver refuses a tensor map or a kernel's attributes, with its words.
  Launcher(const Plan& plan, Phase phase, CUmodule module, const Addresses& addresses);

  /// Queues all steps. Error(usage) when the driver refuses a launch.
  void queue(CUstream stream) const;

 private:
  struct Step {
    std::string kernel;
    CUfunction function = nullptr;
    CUlaunchConfig config{};
    std::vector<CUlaunchAttribute> attributes;
    std::vector<std::unique_ptr<std::byte[]>> values;  // what the parameters hold
    std::vector<void*> parameters;
    CUdeviceptr zero_at = 0;  // a step that clears memory instead
    std::size_t zero_bytes = 0;
  };
  std::vector<Step> steps_;
};

}  // namespace kbh::sealed
