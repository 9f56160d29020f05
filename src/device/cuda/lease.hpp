// Only one grade at a time on a device.
#pragma once

#include <string>

#include "base/fd.hpp"

namespace kbh::cuda {

/// Holds a device for this process, until its end at the latest: the kernel drops the lock of the dead.
class Lease {
 public:
  /// `uuid` names the device. Error(machine), with who holds it since when, when another process does.
  explicit Lease(const std::string& uuid);

 private:
  UniqueFd fd_;
};

}  // namespace kbh::cuda
