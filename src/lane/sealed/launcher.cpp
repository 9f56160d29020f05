#include "lane/sealed/launcher.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace kbh::sealed {
namespace {

void accept(CUresult result, const std::string& what) {
  if (result != CUDA_SUCCESS) fail(ErrorKind::usage, "{}: {}", what, cuda::text_of(result));
}

CUtensorMap encode(const PlanTensorMap& m, CUdeviceptr buffer, std::size_t number) {
  CUtensorMap map{};
  // The driver reads as many strides as there are dimensions, less one.
  std::vector<cuuint64_t> strides(m.strides.begin(), m.strides.end());
  strides.push_back(0);
  const std::vector<cuuint64_t> dims(m.dims.begin(), m.dims.end());
  void* address = reinterpret_cast<void*>(buffer + m.offset);  // NOLINT(performance-no-int-to-ptr)
  accept(cuda::driver().encode_tensor_map(
             &map, static_cast<CUtensorMapDataType>(m.type), static_cast<cuuint32_t>(dims.size()), address, dims.data(),
             strides.data(), m.box.data(), m.element_strides.data(), static_cast<CUtensorMapInterleave>(m.interleave),
             static_cast<CUtensorMapSwizzle>(m.swizzle), static_cast<CUtensorMapL2promotion>(m.promotion),
             static_cast<CUtensorMapFloatOOBfill>(m.fill)),
         fmt::format("the driver refuses tensor map {}", number));
  return map;
}

std::unique_ptr<std::byte[]> copy_of(const void* bytes, std::size_t size) {
  // Parameters are aligned to 64 bytes at most (CUtensorMap): new[] of bytes gives 16, the driver copies them anyway.
  auto copy = std::make_unique<std::byte[]>(size);
  std::memcpy(copy.get(), bytes, size);
  return copy;
}

std::unique_ptr<std::byte[]> value_of(const PlanArgument& a, const Plan& plan, const Addresses& addresses) {
  switch (a.kind) {
    case ArgumentKind::value:
      return copy_of(a.bytes.data(), a.bytes.size());
    case ArgumentKind::pointer: {
      const CUdeviceptr address = addresses.at(a.id) + a.offset;
      return copy_of(&address, sizeof address);
    }
    case ArgumentKind::tensor_map: {
      const PlanTensorMap& m = plan.tensor_maps.at(a.id);
      const CUtensorMap map = encode(m, addresses.at(m.buffer), a.id);
      return copy_of(&map, sizeof map);
    }
  }
  return nullptr;
}

constexpr std::int64_t kSharedWithoutAsking = 48 << 10;
constexpr std::int64_t kPortableCluster = 8;

void allow_resources(CUfunction function, const PlanLaunch& l) {
  const cuda::Driver& d = cuda::driver();
  if (l.shared > kSharedWithoutAsking)
    accept(
        d.set_function_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(l.shared)),
        fmt::format("{} with {} bytes of dynamic shared memory", l.kernel, l.shared));
  if (l.cluster[0] * l.cluster[1] * l.cluster[2] > kPortableCluster)
    accept(d.set_function_attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
           fmt::format("{} in clusters of more than 8 blocks", l.kernel));
}

std::vector<CUlaunchAttribute> attributes_of(const PlanLaunch& l) {
  std::vector<CUlaunchAttribute> attributes;
  if (l.cluster[0] > 0) {
    CUlaunchAttribute a{};
    a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a.value.clusterDim.x = static_cast<unsigned>(l.cluster[0]);
    a.value.clusterDim.y = static_cast<unsigned>(l.cluster[1]);
    a.value.clusterDim.z = static_cast<unsigned>(l.cluster[2]);
    attributes.push_back(a);
  }
  if (l.cooperative) {
    CUlaunchAttribute a{};
    a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    a.value.cooperative = 1;
    attributes.push_back(a);
  }
  if (l.overlap) {
    CUlaunchAttribute a{};
    a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    a.value.programmaticStreamSerializationAllowed = 1;
    attributes.push_back(a);
  }
  return attributes;
}

}  // namespace

Launcher::Launcher(const Plan& plan, Phase phase, CUmodule module, const Addresses& addresses) {
  for (const PlanStep& planned : plan.steps) {
    if (planned.phase != phase) continue;
    Step& step = steps_.emplace_back();
    if (planned.zero) {
      step.zero_at = addresses.at(planned.buffer);
      step.zero_bytes = plan.buffers.at(planned.buffer).bytes;
      continue;
    }
    const PlanLaunch& l = planned.launch;
    step.kernel = l.kernel;
    accept(cuda::driver().function(&step.function, module, l.kernel.c_str()), "kernel " + l.kernel);
    allow_resources(step.function, l);
    step.config.gridDimX = static_cast<unsigned>(l.grid[0]);
    step.config.gridDimY = static_cast<unsigned>(l.grid[1]);
    step.config.gridDimZ = static_cast<unsigned>(l.grid[2]);
    step.config.blockDimX = static_cast<unsigned>(l.block[0]);
    step.config.blockDimY = static_cast<unsigned>(l.block[1]);
    step.config.blockDimZ = static_cast<unsigned>(l.block[2]);
    step.config.sharedMemBytes = static_cast<unsigned>(l.shared);
    step.attributes = attributes_of(l);
    for (const PlanArgument& a : l.arguments) step.values.push_back(value_of(a, plan, addresses));
    for (const auto& value : step.values) step.parameters.push_back(value.get());
  }
}

void Launcher::queue(CUstream stream) const {
  const cuda::Driver& d = cuda::driver();
  for (const Step& step : steps_) {
    if (step.zero_bytes > 0) {
      accept(d.set_bytes(step.zero_at, 0, step.zero_bytes, stream), "plan.zero");
      continue;
    }
    CUlaunchConfig config = step.config;
    config.hStream = stream;
    config.attrs = const_cast<CUlaunchAttribute*>(step.attributes.data());  // NOLINT(*-const-cast): only read
    config.numAttrs = static_cast<unsigned>(step.attributes.size());
    accept(
        d.launch(&config, step.function, const_cast<void**>(step.parameters.data()), nullptr),  // NOLINT(*-const-cast)
        "the driver refuses to launch " + step.kernel);
  }
}

}  // namespace kbh::sealed
