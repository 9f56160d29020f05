// The CUDA driver, loaded at run time: the same kbh starts on a machine without a GPU. Nothing here links the runtime.
#pragma once

#include <cuda.h>

#include <string>
#include <utility>

#include "base/error.hpp"

namespace kbh::cuda {

/// Entry points of libcuda, by the names and versions of cuda.h (12.8).
struct Driver {
  decltype(&::cuInit) init;
  decltype(&::cuDriverGetVersion) driver_version;
  decltype(&::cuGetErrorName) error_name;
  decltype(&::cuGetErrorString) error_text;

  decltype(&::cuDeviceGetCount) device_count;
  decltype(&::cuDeviceGet) device;
  decltype(&::cuDeviceGetName) device_name;
  decltype(&::cuDeviceGetUuid) device_uuid;
  decltype(&::cuDeviceGetAttribute) device_attribute;
  decltype(&::cuDeviceTotalMem) device_memory;

  decltype(&::cuDevicePrimaryCtxRetain) retain_context;
  decltype(&::cuDevicePrimaryCtxRelease) release_context;
  decltype(&::cuCtxSetCurrent) set_context;
  decltype(&::cuCtxSynchronize) synchronize;
  decltype(&::cuCtxResetPersistingL2Cache) reset_persisting_l2;

  decltype(&::cuModuleLoadData) load_module;
  decltype(&::cuModuleUnload) unload_module;
  decltype(&::cuModuleGetFunction) function;
  decltype(&::cuModuleGetGlobal) global;
  decltype(&::cuFuncSetAttribute) set_function_attribute;
  decltype(&::cuFuncGetAttribute) function_attribute;
  decltype(&::cuFuncGetParamInfo) parameter_info;
  decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessor) blocks_per_multiprocessor;
  decltype(&::cuLaunchKernelEx) launch;

  decltype(&::cuStreamCreate) create_stream;
  decltype(&::cuStreamDestroy) destroy_stream;
  decltype(&::cuStreamSynchronize) synchronize_stream;
  decltype(&::cuStreamQuery) query_stream;
  decltype(&::cuStreamBeginCapture) begin_capture;
  decltype(&::cuStreamEndCapture) end_capture;
  decltype(&::cuGraphInstantiate) instantiate_graph;
  decltype(&::cuGraphLaunch) launch_graph;
  decltype(&::cuGraphExecDestroy) destroy_graph_exec;
  decltype(&::cuGraphDestroy) destroy_graph;

  decltype(&::cuEventCreate) create_event;
  decltype(&::cuEventDestroy) destroy_event;
  decltype(&::cuEventRecord) record_event;
  decltype(&::cuEventSynchronize) synchronize_event;
  decltype(&::cuEventElapsedTime) elapsed_ms;

  decltype(&::cuMemAlloc) allocate;
  decltype(&::cuMemFree) release;
  decltype(&::cuMemHostAlloc) allocate_host;
  decltype(&::cuMemFreeHost) release_host;
  decltype(&::cuMemHostGetDevicePointer) device_pointer_of_host;
  decltype(&::cuMemcpyHtoDAsync) copy_to_device;
  decltype(&::cuMemcpyDtoHAsync) copy_to_host;
  decltype(&::cuMemcpyDtoDAsync) copy_on_device;
  decltype(&::cuMemsetD8Async) set_bytes;
  decltype(&::cuMemsetD32Async) set_words;

  decltype(&::cuMemGetAllocationGranularity) granularity;
  decltype(&::cuMemCreate) create_memory;
  decltype(&::cuMemRelease) release_memory;
  decltype(&::cuMemAddressReserve) reserve_addresses;
  decltype(&::cuMemAddressFree) free_addresses;
  decltype(&::cuMemMap) map;
  decltype(&::cuMemUnmap) unmap;
  decltype(&::cuMemSetAccess) set_access;
  decltype(&::cuMemExportToShareableHandle) export_memory;
  decltype(&::cuMemImportFromShareableHandle) import_memory;

  decltype(&::cuTensorMapEncodeTiled) encode_tensor_map;
};

/// The driver of this machine, initialised, or why there is none, in words.
struct DriverState {
  Driver driver{};
  bool usable = false;
  std::string why;
};
const DriverState& driver_state();

/// Error(machine) with the reason when there is none.
const Driver& driver();

/// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
std::string text_of(CUresult result);

/// For calls whose failure is the machine's or our own doing: Error(machine) for a full or busy device, else internal.
void check(CUresult result, const char* what);

/// Owns one driver object; End is called with it at the end of its life.
template <typename Handle, auto End>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_) (driver().*End)(handle_);
  }
  [[nodiscard]] Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != Handle{}; }

 private:
  Handle handle_{};
};

using Module = Owned<CUmodule, &Driver::unload_module>;
using Stream = Owned<CUstream, &Driver::destroy_stream>;
using Event = Owned<CUevent, &Driver::destroy_event>;
using DeviceMemory = Owned<CUdeviceptr, &Driver::release>;

Stream make_stream();
Event make_event();
DeviceMemory allocate(std::size_t bytes);

/// Page-locked memory of the host that kernels see too, at another address.
class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(std::size_t bytes);
  HostMemory(HostMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), device_(other.device_), bytes_(std::exchange(other.bytes_, 0)) {}
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] CUdeviceptr on_device() const { return device_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  CUdeviceptr device_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace kbh::cuda
