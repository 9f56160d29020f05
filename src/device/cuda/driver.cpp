#include "device/cuda/driver.hpp"

#include <dlfcn.h>

namespace kbh::cuda {
namespace {

/// Looks names up until one is missing.
class Loader {
 public:
  explicit Loader(void* library) : library_(library) {}
  template <typename Function>
  void operator()(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (!function && missing_.empty()) missing_ = name;
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

// cuda.h renames functions to their newest version (cuMemAlloc is cuMemAlloc_v2), which dlsym must be told.
std::string load_names(void* library, Driver& d) {
  Loader load(library);
  load(d.init, "cuInit");
  load(d.driver_version, "cuDriverGetVersion");
  load(d.error_name, "cuGetErrorName");
  load(d.error_text, "cuGetErrorString");
  load(d.device_count, "cuDeviceGetCount");
  load(d.device, "cuDeviceGet");
  load(d.device_name, "cuDeviceGetName");
  load(d.device_uuid, "cuDeviceGetUuid_v2");
  load(d.device_attribute, "cuDeviceGetAttribute");
  load(d.device_memory, "cuDeviceTotalMem_v2");
  load(d.retain_context, "cuDevicePrimaryCtxRetain");
  load(d.release_context, "cuDevicePrimaryCtxRelease_v2");
  load(d.set_context, "cuCtxSetCurrent");
  load(d.synchronize, "cuCtxSynchronize");
  load(d.reset_persisting_l2, "cuCtxResetPersistingL2Cache");
  load(d.load_module, "cuModuleLoadData");
  load(d.unload_module, "cuModuleUnload");
  load(d.function, "cuModuleGetFunction");
  load(d.global, "cuModuleGetGlobal_v2");
  load(d.set_function_attribute, "cuFuncSetAttribute");
  load(d.function_attribute, "cuFuncGetAttribute");
  load(d.parameter_info, "cuFuncGetParamInfo");
  load(d.blocks_per_multiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  load(d.launch, "cuLaunchKernelEx");
  load(d.create_stream, "cuStreamCreate");
  load(d.destroy_stream, "cuStreamDestroy_v2");
  load(d.synchronize_stream, "cuStreamSynchronize");
  load(d.query_stream, "cuStreamQuery");
  load(d.begin_capture, "cuStreamBeginCapture_v2");
  load(d.end_capture, "cuStreamEndCapture");
  load(d.instantiate_graph, "cuGraphInstantiateWithFlags");
  load(d.launch_graph, "cuGraphLaunch");
  load(d.destroy_graph_exec, "cuGraphExecDestroy");
  load(d.destroy_graph, "cuGraphDestroy");
  load(d.create_event, "cuEventCreate");
  load(d.destroy_event, "cuEventDestroy_v2");
  load(d.record_event, "cuEventRecord");
  load(d.synchronize_event, "cuEventSynchronize");
  load(d.elapsed_ms, "cuEventElapsedTime");
  load(d.allocate, "cuMemAlloc_v2");
  load(d.release, "cuMemFree_v2");
  load(d.allocate_host, "cuMemHostAlloc");
  load(d.release_host, "cuMemFreeHost");
  load(d.device_pointer_of_host, "cuMemHostGetDevicePointer_v2");
  load(d.copy_to_device, "cuMemcpyHtoDAsync_v2");
  load(d.copy_to_host, "cuMemcpyDtoHAsync_v2");
  load(d.copy_on_device, "cuMemcpyDtoDAsync_v2");
  load(d.set_bytes, "cuMemsetD8Async");
  load(d.set_words, "cuMemsetD32Async");
  load(d.granularity, "cuMemGetAllocationGranularity");
  load(d.create_memory, "cuMemCreate");
  load(d.release_memory, "cuMemRelease");
  load(d.reserve_addresses, "cuMemAddressReserve");
  load(d.free_addresses, "cuMemAddressFree");
  load(d.map, "cuMemMap");
  load(d.unmap, "cuMemUnmap");
  load(d.set_access, "cuMemSetAccess");
  load(d.export_memory, "cuMemExportToShareableHandle");
  load(d.import_memory, "cuMemImportFromShareableHandle");
  load(d.encode_tensor_map, "cuTensorMapEncodeTiled");
  return load.missing();
}

DriverState load_driver() {
  DriverState state;
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    state.why = fmt::format("no NVIDIA driver ({})", ::dlerror());
    return state;
  }
  const std::string missing = load_names(library, state.driver);
  if (!missing.empty()) {
    state.why = fmt::format("the NVIDIA driver is too old: it lacks {} (CUDA 12.4 or later has it)", missing);
    return state;
  }
  const CUresult started = state.driver.init(0);
  int devices = 0;
  if (started == CUDA_SUCCESS) state.driver.device_count(&devices);
  state.usable = devices > 0;
  if (started != CUDA_SUCCESS) {
    const char* name = nullptr;
    state.driver.error_name(started, &name);
    state.why = fmt::format("the NVIDIA driver does not start: {}", name ? name : "unknown error");
  } else if (devices == 0) {
    state.why = "the NVIDIA driver sees no device";
  }
  return state;
}

}  // namespace

const DriverState& driver_state() {
  static const DriverState state = load_driver();
  return state;
}

const Driver& driver() {
  const DriverState& state = driver_state();
  if (!state.usable) fail(ErrorKind::machine, "{}", state.why);
  return state.driver;
}

std::string text_of(CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver().error_name(result, &name);
  driver().error_text(result, &text);
  return fmt::format("{} ({})", name ? name : "unknown", text ? text : "?");
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const bool machine = result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_DEVICE_UNAVAILABLE ||
                       result == CUDA_ERROR_SYSTEM_NOT_READY || result == CUDA_ERROR_NO_DEVICE;
  fail(machine ? ErrorKind::machine : ErrorKind::internal, "{}: {}", what, text_of(result));
}

Stream make_stream() {
  CUstream stream = nullptr;
  check(driver().create_stream(&stream, CU_STREAM_NON_BLOCKING), "cannot make a stream");
  return Stream(stream);
}

Event make_event() {
  CUevent event = nullptr;
  check(driver().create_event(&event, CU_EVENT_DEFAULT), "cannot make an event");
  return Event(event);
}

DeviceMemory allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  check(driver().allocate(&address, bytes), "cannot allocate device memory");
  return DeviceMemory(address);
}

HostMemory::HostMemory(std::size_t bytes) : bytes_(bytes) {
  check(driver().allocate_host(&data_, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
        "cannot allocate page-locked memory");
  check(driver().device_pointer_of_host(&device_, data_, 0), "cannot map page-locked memory");
}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(device_, other.device_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostMemory::~HostMemory() {
  if (data_) driver().release_host(data_);
}

}  // namespace kbh::cuda
