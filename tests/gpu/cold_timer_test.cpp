// The cold timer against kernels whose time is known.
#include "device/cuda/cold_timer.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "base/statistics.hpp"

namespace kbh::cuda {
namespace {

constexpr std::int64_t kSweepBytes = 512 << 20;
constexpr double kLimitSeconds = 5;

class OnAGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!driver_state().usable) GTEST_SKIP() << driver_state().why;
    context_.emplace(0);
    timer_.emplace(device_info(0), kSweepBytes);
    timing_ = load_device_code("timing");
    kernels_ = load_device_code("gpu_tests");
  }

  double median_us(const std::function<void(CUstream)>& queue, Flush flush) {
    std::vector<double> us;
    for (int i = 0; i < 31; ++i) {
      const TimedCall call = timer_->time(queue, flush, kLimitSeconds);
      EXPECT_EQ(call.status, CUDA_SUCCESS);
      EXPECT_FALSE(call.timed_out);
      EXPECT_FALSE(call.gave_up);
      EXPECT_GE(call.host_us, call.event_us) << "the host's clock bounds the device's";
      us.push_back(call.event_us);
    }
    return median(us);
  }

  void spin(std::uint64_t ns, CUstream stream) { launch(kernel(kernels_, "kbh_spin"), {1, 1}, stream, {&ns}); }

  std::optional<Context> context_;
  std::optional<ColdTimer> timer_;
  Module timing_;
  Module kernels_;
};

using ColdTimerOnAGpu = OnAGpu;

TEST_F(ColdTimerOnAGpu, AnEmptyKernelReadsItsLaunch) {
  const CUfunction empty = kernel(timing_, "kbh_empty");
  const double us = median_us([&](CUstream stream) { launch(empty, {1, 32}, stream, {}); }, Flush::clean);
  EXPECT_GT(us, 2);
  EXPECT_LT(us, 4);
}

TEST_F(ColdTimerOnAGpu, AKnownTimeReadsAsItself) {
  for (const std::uint64_t ns : {200'000, 1'000'000}) {
    const double us = median_us([&](CUstream stream) { spin(ns, stream); }, Flush::none);
    EXPECT_NEAR(us, static_cast<double>(ns) * 1e-3, static_cast<double>(ns) * 0.05e-3);
  }
}

TEST_F(ColdTimerOnAGpu, TheClockIsTheMultiprocessors) {
  const TimedCall call = timer_->time([&](CUstream stream) { spin(1'000'000, stream); }, Flush::clean, kLimitSeconds);
  EXPECT_GT(call.clock_mhz, 500);
  EXPECT_LT(call.clock_mhz, device_info(0).max_clock_khz * 1.02e-3);
}

TEST_F(ColdTimerOnAGpu, ACleanFlushLeavesNothingOfTheCall) {
  constexpr std::size_t kBytes = 8 << 20;
  const DeviceMemory memory = allocate(kBytes);
  const DeviceMemory sink = allocate(sizeof(unsigned));
  check(driver().set_bytes(memory.get(), 0, kBytes, timer_->stream()), "cannot set memory");
  const auto read = [&](CUstream stream) {
    CUdeviceptr from = memory.get();
    CUdeviceptr to = sink.get();
    std::uint64_t count = kBytes / 16;
    const auto blocks = static_cast<unsigned>(4 * device_info(0).multiprocessors);
    launch(kernel(timing_, "kbh_read_sweep"), {blocks, 512}, stream, {&from, &count, &to});
  };
  const double cold = median_us(read, Flush::clean);
  const double warm = median_us(read, Flush::none);
  const double cold_again = median_us(read, Flush::clean);
  EXPECT_LT(warm, 0.9 * cold) << "the second level holds 8 MB";
  EXPECT_NEAR(cold_again, cold, 0.05 * cold);
}

TEST_F(ColdTimerOnAGpu, ACallThatRunsTooLongIsSaidToAndTheDeviceIsUsableAfter) {
  const TimedCall call = timer_->time([&](CUstream stream) { spin(1'000'000'000, stream); }, Flush::none, 0.1);
  EXPECT_TRUE(call.timed_out);
  check(driver().synchronize_stream(timer_->stream()), "the device does not recover");
  EXPECT_EQ(timer_->time([](CUstream) {}, Flush::none, kLimitSeconds).status, CUDA_SUCCESS);
}

// In a process of its own, which starts this test anew: a fault ends a context for good.
TEST_F(ColdTimerOnAGpu, AFaultIsTheCallsStatus) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto faulted = [&] {
    CUdeviceptr nowhere = 0;
    const auto queue = [&](CUstream stream) { launch(kernel(kernels_, "kbh_fault"), {1, 1}, stream, {&nowhere}); };
    const TimedCall call = timer_->time(queue, Flush::none, kLimitSeconds);
    return call.status != CUDA_SUCCESS && !call.timed_out;
  };
  EXPECT_EXIT(std::_Exit(faulted() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace kbh::cuda
