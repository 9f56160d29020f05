// That the ceilings of a GPU agree with what its data sheet allows.
#include "device/cuda/ceilings.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "device/cuda/nvml.hpp"

namespace kbh::cuda {
namespace {

class CeilingsOnAGpu : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!driver_state().usable) return;
    const auto begin = std::chrono::steady_clock::now();
    measured_ = measure_ceilings(device_info(0), [](std::string_view line) { fmt::print("{}\n", line); });
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  void SetUp() override {
    if (!driver_state().usable) GTEST_SKIP() << driver_state().why;
  }

  static inline Ceilings measured_;
  static inline double seconds_ = 0;
};

TEST_F(CeilingsOnAGpu, TakeLittleTime) { EXPECT_LT(seconds_, 15); }

TEST_F(CeilingsOnAGpu, SurviveJson) {
  EXPECT_EQ(ceilings_from_json(to_json(measured_), "measured").math, measured_.math);
}

TEST_F(CeilingsOnAGpu, LaunchesCostWhatTheyDo) {
  const LaunchFloors& f = measured_.floors;
  EXPECT_LT(f.nothing_us, f.empty_kernel_us);
  EXPECT_LT(f.empty_kernel_us, f.two_kernels_us);
  EXPECT_GT(f.empty_kernel_us, 2);
  EXPECT_LT(f.empty_kernel_us, 4);
  EXPECT_LT(f.two_kernels_us, 2 * f.empty_kernel_us);
}

TEST_F(CeilingsOnAGpu, NoBytesMoveFasterThanTheBus) {
  double before = measured_.launch_floor_us();
  for (const BandwidthPoint& p : measured_.bandwidth) {
    SCOPED_TRACE(p.bytes);
    EXPECT_GE(p.read_us, before) << "more bytes take longer";
    before = 0.98 * p.read_us;
    EXPECT_LE(p.read_gbs(), measured_.bus_gbs);
    if (p.bytes < 16 * measured_.l2_bytes) continue;  // less is written than the cache may keep
    EXPECT_LE(p.write_gbs(), measured_.bus_gbs);
    EXPECT_LE(p.copy_gbs(), measured_.bus_gbs);
  }
  EXPECT_GE(measured_.memory_read_gbs(), 0.85 * measured_.bus_gbs);
}

TEST_F(CeilingsOnAGpu, ProductsStayBelowTheClock) {
  const DeviceInfo device = device_info(0);
  if (device.major != 9) GTEST_SKIP() << "the rates below are Hopper's";
  // Operations per clock and multiprocessor.
  const std::map<std::string, double> rates = {{"fp8_e4m3", 8192}, {"int8", 8192}, {"bf16", 4096}, {"fp16", 4096},
                                               {"tf32", 2048},     {"fp64", 256},  {"fp32", 256}};
  for (const auto& [dtype, rate] : rates) {
    SCOPED_TRACE(dtype);
    const auto found = measured_.math.find(dtype);
    ASSERT_NE(found, measured_.math.end());
    const double peak = rate * device.multiprocessors * device.max_clock_khz * 1e-9;
    EXPECT_LE(found->second.burst_tflops, 1.01 * peak);
    EXPECT_GE(found->second.burst_tflops, 0.75 * peak);
    // A burst holds a launch and an uneven end: 5 to 12 % of 100 us (seen on an H200).
    EXPECT_LE(found->second.sustained_tflops, 1.15 * found->second.burst_tflops);
    EXPECT_GE(found->second.sustained_tflops, 0.5 * peak);
  }
}

TEST(NvmlOnAGpu, KnowsTheDevice) {
  if (!driver_state().usable) GTEST_SKIP() << driver_state().why;
  const GpuState state = gpu_state(device_info(0).uuid);
  fmt::print("{}", to_text(to_json(state)));
  if (!state.power_w) GTEST_SKIP() << "NVML: " << nvml_library();
  EXPECT_GT(*state.power_w, 10);
  EXPECT_LT(*state.power_w, 1500);
}

}  // namespace
}  // namespace kbh::cuda
