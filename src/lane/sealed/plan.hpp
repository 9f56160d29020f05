// The plan of a sealed submission for one shape, as data. It comes from a process that ran foreign code: every number
// is checked before anything is done with it (validate.hpp).
#pragma once

#include <kbh/sealed_abi.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace kbh::sealed {

enum class BufferKind { state = 1, input, output, scratch, counters, prepared };
enum class Phase { prepare = 1, run };
enum class ArgumentKind { value = 1, pointer, tensor_map };

struct PlanBuffer {
  BufferKind kind = BufferKind::scratch;
  std::uint32_t index = 0;  // of the tensor within its role
  std::uint64_t bytes = 0;  // 0 for state, inputs and outputs: the problem says
};

struct PlanTensorMap {
  std::uint32_t buffer = 0;
  std::uint64_t offset = 0;
  std::int32_t type = 0;
  std::vector<std::uint64_t> dims;     // elements, innermost first
  std::vector<std::uint64_t> strides;  // bytes, one less
  std::vector<std::uint32_t> box;
  std::vector<std::uint32_t> element_strides;
  std::int32_t interleave = 0;
  std::int32_t swizzle = 0;
  std::int32_t promotion = 0;
  std::int32_t fill = 0;
};

struct PlanArgument {
  ArgumentKind kind = ArgumentKind::value;
  std::uint32_t id = 0;
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  bool writable = false;
  std::string bytes;  // of a value
};

struct PlanLaunch {
  std::string kernel;  // mangled name
  std::array<std::int64_t, 3> grid{};
  std::array<std::int64_t, 3> block{};
  std::array<std::int64_t, 3> cluster{};
  std::int64_t shared = 0;
  bool cooperative = false;
  bool overlap = false;
  std::vector<PlanArgument> arguments;
};

/// A launch, or the clearing of a buffer.
struct PlanStep {
  Phase phase = Phase::run;
  bool zero = false;
  std::uint32_t buffer = 0;  // with zero
  PlanLaunch launch;         // without
};

struct Plan {
  std::vector<PlanBuffer> buffers;
  std::vector<PlanTensorMap> tensor_maps;
  std::vector<PlanStep> steps;
  std::string refused;  // the plan function's own words; empty when it went through
};

Json to_json(const Plan& plan);

/// Error(usage) names what is malformed. Structure only: sizes and references are validate's business.
Plan plan_from_json(const Json& json);

}  // namespace kbh::sealed
