#ifdef KBH_WITH_CUDA

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.hpp"
#include "base/files.hpp"
#include "device/cuda/ceilings.hpp"
#include "device/cuda/nvml.hpp"

namespace kbh::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeviceInfo device() {
  DeviceInfo info;
  info.name = "NVIDIA Test";
  info.uuid = "GPU-1";
  info.driver_version = 13000;
  return info;
}

Ceilings sample() {
  Ceilings c;
  c.device = "NVIDIA Test";
  c.uuid = "GPU-1";
  c.driver = "580.1";
  c.measured_at = "2026-01-01T00:00:00Z";
  c.l2_bytes = 1 << 20;
  c.bus_gbs = 4900;
  c.bandwidth = {{1 << 20, 4, 5, 6}, {4 << 20, 5, 6, 7}, {16 << 20, 8, 9, 10}};
  c.math = {{"bf16", {"wgmma", 900, 700, 1500}}, {"fp32", {"fused multiply-add", 50, 51, 1900}}};
  c.floors = {1.25, 2.5, 4, 5, 2.75};
  return c;
}

TEST(CudaCeilings, ColdReadsAreInterpolatedFromAnEmptyKernelOn) {
  const Ceilings c = sample();
  EXPECT_DOUBLE_EQ(c.cold_read_us_at(0), 2.5);
  EXPECT_DOUBLE_EQ(c.cold_read_us_at(1 << 19), 3.25);
  EXPECT_DOUBLE_EQ(c.cold_read_us_at(1 << 20), 4);
  EXPECT_DOUBLE_EQ(c.cold_read_us_at(10 << 20), 6.5);
  EXPECT_DOUBLE_EQ(c.cold_read_us_at(16 << 20), 8);
  EXPECT_DOUBLE_EQ(c.cold_read_us_at(32 << 20), 16);
}

TEST(CudaCeilings, MemoryIsWhatTheCacheCannotHold) {
  Ceilings c = sample();
  EXPECT_DOUBLE_EQ(c.memory_read_gbs(), (16 << 20) / 8e3);
  c.bandwidth.back().read_us = 80;
  EXPECT_DOUBLE_EQ(c.memory_read_gbs(), (4 << 20) / 5e3) << "4 MiB are 4 times the cache";
  c.l2_bytes = 1 << 30;
  EXPECT_DOUBLE_EQ(c.memory_read_gbs(), (16 << 20) / 80e3);
}

TEST(CudaCeilings, APeakIsTheBetterOfBurstAndSustained) {
  EXPECT_EQ(sample().peak_tflops("bf16"), 900);
  EXPECT_EQ(sample().peak_tflops("fp32"), 51);
  EXPECT_EQ(sample().peak_tflops("int4"), 0);
}

TEST(CudaCeilings, SurviveJson) {
  const Json json = to_json(sample());
  EXPECT_EQ(json["schema"], "kbh.cuda-ceilings/1");
  EXPECT_EQ(ceilings_from_json(Json::parse(to_text(json)), "test"), sample());
  Ceilings without_clusters = sample();
  without_clusters.floors.cluster_us.reset();
  EXPECT_EQ(ceilings_from_json(to_json(without_clusters), "test"), without_clusters);
}

TEST(CudaCeilings, BrokenDocumentsAreRefusedByField) {
  const auto refusal = [](auto change) -> std::string {
    Json json = to_json(sample());
    change(json);
    try {
      ceilings_from_json(json, "file.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([](Json& j) { j.erase("uuid"); }), "file.json: field uuid is missing");
  EXPECT_THAT(refusal([](Json& j) { j["driver"] = ""; }), HasSubstr("driver is \"\", expected text"));
  EXPECT_THAT(refusal([](Json& j) { j["bandwidth"] = Json::array(); }), HasSubstr("bandwidth is []"));
  EXPECT_THAT(refusal([](Json& j) { j["bandwidth"][1]["copy_us"] = 0; }), HasSubstr("bandwidth[1].copy_us is 0"));
  EXPECT_THAT(refusal([](Json& j) { j["bandwidth"][1]["bytes"] = 5; }), HasSubstr("more than the point before"));
  EXPECT_THAT(refusal([](Json& j) { j["math"] = Json::object(); }), HasSubstr("math is {}"));
  EXPECT_THAT(refusal([](Json& j) { j["math"]["bf16"].erase("loop"); }), HasSubstr("math.bf16.loop is missing"));
  EXPECT_THAT(refusal([](Json& j) { j["floors"]["graph_us"] = "?"; }), HasSubstr("floors.graph_us is \"?\""));
}

TEST(CudaCeilings, AreOnlyEverRaised) {
  Ceilings slow = sample();
  Ceilings fast = sample();
  fast.bandwidth.front().read_us /= 2;
  fast.math["bf16"] = {"another loop", 950, 750, 1600};
  fast.floors.two_kernels_us -= 0.5;
  fast.floors.cluster_us = 2.6;
  raise_to(slow, fast);
  EXPECT_EQ(slow, fast);
  raise_to(fast, sample());
  EXPECT_EQ(slow, fast) << "worse figures change nothing";
}

/// A cache folder of its own, with a measurement that only counts.
class CachedCudaCeilings : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("KBH_CACHE", folder_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("KBH_CACHE"); }

  Ceilings get(bool again = false) {
    lines_.clear();
    return ceilings(
        device(), again, [this](std::string_view line) { lines_ += fmt::format("{}\n", line); },
        [this](const CeilingsProgress&) {
          Ceilings measured = sample();
          measured.floors.empty_kernel_us = 2 + ++measurements_;
          return measured;
        });
  }

  TempDir folder_;
  std::string lines_;
  int measurements_ = 0;
};

TEST_F(CachedCudaCeilings, MeasuredOnceThenRead) {
  EXPECT_EQ(cached_ceilings(device()), std::nullopt);
  const Ceilings measured = get();
  EXPECT_EQ(get(), measured);
  EXPECT_EQ(cached_ceilings(device()), measured);
  EXPECT_EQ(measurements_, 1);
  EXPECT_EQ(get(true).launch_floor_us(), 3) << "the second measurement was worse";
  EXPECT_EQ(measurements_, 2);
  EXPECT_EQ(lines_, "");
}

TEST_F(CachedCudaCeilings, ABrokenFileIsMeasuredAgainWithANote) {
  get();
  const fs::path file = folder_.path() / list_files(folder_.path()).at(0);
  EXPECT_THAT(file.string(), HasSubstr("ceilings-GPU-1"));
  for (const char* content : {"", "{\"schema\": \"kbh.cuda-ceilings/1\"}", "[1, 2"}) {
    write_atomic(file, content);
    get();
    EXPECT_THAT(lines_, HasSubstr("measuring again"));
  }
  Ceilings others = sample();
  others.uuid = "GPU-2";
  write_atomic(file, to_text(to_json(others)));
  EXPECT_EQ(get().uuid, "GPU-1");
  EXPECT_THAT(lines_, HasSubstr("field uuid is GPU-2, expected GPU-1"));
}

TEST(Nvml, ReasonsHaveNames) {
  EXPECT_THAT(clock_limit_names(0), ElementsAre());
  EXPECT_THAT(clock_limit_names(0x1), ElementsAre()) << "idle";
  EXPECT_THAT(clock_limit_names(0x4 | 0x40), ElementsAre("sw_power_cap", "hw_thermal_slowdown"));
  EXPECT_THAT(clock_limit_names(0x1000), ElementsAre("0x1000"));
}

TEST(Nvml, WhatCannotBeReadIsUnavailable) {
  GpuState state;
  state.power_w = 71.5;
  state.compute_processes = std::vector<int>{};
  const Json json = to_json(state);
  EXPECT_EQ(json["power_w"], 71.5);
  EXPECT_EQ(json["compute_processes"], Json::array());
  EXPECT_EQ(json["clock_limits"], "unavailable");
  EXPECT_EQ(json["mig"], "unavailable");
  EXPECT_EQ(to_json(gpu_state("GPU-no-such-device"))["power_w"], "unavailable");
}

}  // namespace
}  // namespace kbh::cuda

#endif
