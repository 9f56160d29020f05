// What kbh doctor has found out.
#pragma once

#include <string>
#include <vector>

namespace kbh::cli {

enum class Status { ok, note, missing };

struct Finding {
  std::string topic;
  Status status = Status::ok;
  std::string text;
  std::string fix;  // empty when nothing is to be done
};

/// The GPUs, their driver, and the libraries that come with it.
std::vector<Finding> gpu_findings();

}  // namespace kbh::cli
