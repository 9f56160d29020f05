#include "device/cuda/device.hpp"

namespace kbh::cuda {
namespace {

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().device_attribute(&value, which, device), "cannot ask a device for an attribute");
  return value;
}

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

int count() {
  int devices = 0;
  check(driver().device_count(&devices), "cannot count devices");
  return devices;
}

}  // namespace

double DeviceInfo::bus_gbs() const { return 2.0 * max_memory_clock_khz * 1e3 * memory_bus_bits / 8 * 1e-9; }

DeviceInfo device_info(int index) {
  const int all = count();
  if (index < 0 || index >= all)
    fail(ErrorKind::usage, "--device {}: this machine has devices 0 to {}", index, all - 1);
  const Driver& d = driver();
  CUdevice device = 0;
  check(d.device(&device, index), "cannot open a device");
  DeviceInfo info;
  info.index = index;
  char name[128] = {};
  check(d.device_name(name, sizeof name, device), "cannot ask for a device's name");
  info.name = name;
  CUuuid uuid{};
  check(d.device_uuid(&uuid, device), "cannot ask for a device's uuid");
  info.uuid = uuid_text(uuid);
  std::size_t memory = 0;
  check(d.device_memory(&memory, device), "cannot ask for a device's memory");
  info.memory_bytes = static_cast<std::int64_t>(memory);
  info.major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.multiprocessors = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.l2_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  info.max_clock_khz = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  info.max_memory_clock_khz = attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  info.memory_bus_bits = attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  d.driver_version(&info.driver_version);
  return info;
}

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> all;
  for (int i = 0; i < count(); ++i) all.push_back(device_info(i));
  return all;
}

Context::Context(int index) {
  check(driver().device(&device_, index), "cannot open a device");
  CUcontext context = nullptr;
  check(driver().retain_context(&context, device_), "cannot make a context");
  check(driver().set_context(context), "cannot use a context");
}

Context::~Context() { driver().release_context(device_); }

}  // namespace kbh::cuda
