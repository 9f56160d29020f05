#include "device/cpu/ceilings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "device/cpu/simd_kernels.hpp"
#include "device/cpu/topology.hpp"

namespace kbh::cpu {
namespace {

using ::testing::HasSubstr;

struct alignas(64) Line {
  std::array<std::uint64_t, 8> words{};
};

/// `granules` of random content, aligned, with a guard of one granule behind.
class Memory {
 public:
  explicit Memory(std::size_t granules)
      : bytes(granules * kKernelGranule), lines_((granules + 1) * kKernelGranule / 64) {
    std::mt19937_64 random(bytes);
    for (Line& line : lines_)
      for (std::uint64_t& word : line.words) word = random();
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  std::uint64_t* words() { return lines_.front().words.data(); }

  std::size_t bytes;

 private:
  std::vector<Line> lines_;
};

std::uint64_t exclusive_or(Memory& memory) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < memory.bytes / 8; ++i) value ^= memory.words()[i];
  return value;
}

class EachInstructionSet : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static const SimdKernels& loops() { return simd_kernels()[GetParam()]; }
};

INSTANTIATE_TEST_SUITE_P(SimdKernels, EachInstructionSet, ::testing::Range(std::size_t{0}, simd_kernels().size()));

TEST_P(EachInstructionSet, ReadTouchesEveryByteAndNoOther) {
  for (const std::size_t granules : {1, 3, 16}) {
    Memory memory(granules);
    const std::uint64_t sum = exclusive_or(memory);
    for (const auto read : {loops().read, loops().read_streams}) {
      EXPECT_EQ(read(memory.data(), memory.bytes), sum);
      for (std::size_t byte = 0; byte < memory.bytes; byte += 61) {
        memory.data()[byte] ^= std::byte{1};
        EXPECT_NE(read(memory.data(), memory.bytes), sum) << "byte " << byte << " is not read";
        memory.data()[byte] ^= std::byte{1};
      }
    }
  }
}

TEST_P(EachInstructionSet, WriteFillsExactly) {
  for (const auto write : {loops().write, loops().write_streaming}) {
    Memory memory(3);
    const std::uint64_t guard = memory.words()[memory.bytes / 8];
    write(memory.data(), memory.bytes, 0x0123456789abcdef);
    for (std::size_t i = 0; i < memory.bytes / 8; ++i) ASSERT_EQ(memory.words()[i], 0x0123456789abcdef) << i;
    EXPECT_EQ(memory.words()[memory.bytes / 8], guard);
  }
}

TEST_P(EachInstructionSet, CopyIsExact) {
  for (const auto copy : {loops().copy, loops().copy_streaming}) {
    Memory from(3);
    Memory to(5);
    const std::uint64_t guard = to.words()[from.bytes / 8];
    copy(to.data(), from.data(), from.bytes);
    EXPECT_EQ(std::memcmp(to.data(), from.data(), from.bytes), 0);
    EXPECT_EQ(to.words()[from.bytes / 8], guard);
  }
}

TEST_P(EachInstructionSet, MultiplyAddCountsItsLanes) {
  // No round: the sum of the starts, 2 (1 + ... + 12) in every lane. Many rounds: every chain tends to 1.
  const double fp32_chains = static_cast<double>(loops().fp32_flops_per_round) / 2;
  const double fp64_chains = static_cast<double>(loops().fp64_flops_per_round) / 2;
  EXPECT_EQ(loops().fma_fp32(0, 2), 156 * fp32_chains / 12);
  EXPECT_EQ(loops().fma_fp64(0, 2), 156 * fp64_chains / 12);
  EXPECT_NEAR(loops().fma_fp32(50'000, 2), fp32_chains, 0.01 * fp32_chains);
  EXPECT_NEAR(loops().fma_fp64(50'000, 2), fp64_chains, 0.001 * fp64_chains);
  EXPECT_EQ(loops().fp32_flops_per_round, 2 * loops().fp64_flops_per_round);
}

TEST(SimdKernels, DotCountsItsLanes) {
  const SimdKernels& loops = simd_kernels().front();
  if (!loops.dot_bf16) GTEST_SKIP() << "no bf16 dot product on this processor";
  EXPECT_EQ(loops.dot_bf16(0, 2), 156.0 * 16);
  // A round adds two products of 2^-32 and 1 to every lane: lost against sums of at least 2, seen against 0.
  const double lanes = static_cast<double>(loops.bf16_flops_per_round) / 4;
  EXPECT_EQ(loops.dot_bf16(1 << 10, 0), lanes * (1 << 10) * 0x1p-31);
}

Ceilings sample() {
  Ceilings ceilings;
  ceilings.machine = "m";
  ceilings.model = "CPU";
  ceilings.isa = "avx2+fma";
  ceilings.threads = 2;
  ceilings.llc_bytes = 1 << 20;
  ceilings.measured_at = "2026-01-01T00:00:00Z";
  ceilings.bandwidth = {{1 << 20, 100, 90, 110, 10}, {4 << 20, 50, 40, 60, 20}, {16 << 20, 30, 25, 35, 40}};
  ceilings.peak_gflops = {{"bf16", 400}, {"fp32", 200}, {"fp64", 100}};
  ceilings.call_floor_us = 7.5;
  return ceilings;
}

TEST(Ceilings, MemoryIsWhatTheCachesCannotHold) {
  Ceilings ceilings = sample();
  EXPECT_EQ(ceilings.memory_read_gbs(), 50);  // 4 MiB are 4 times the cache
  ceilings.llc_bytes = 1 << 30;
  EXPECT_EQ(ceilings.memory_read_gbs(), 30);
}

TEST(Ceilings, ColdReadIsInterpolatedInTheLogarithm) {
  const Ceilings ceilings = sample();
  EXPECT_EQ(ceilings.cold_read_gbs_at(1), 10);
  EXPECT_EQ(ceilings.cold_read_gbs_at(1 << 20), 10);
  EXPECT_DOUBLE_EQ(ceilings.cold_read_gbs_at(2 << 20), 15);
  EXPECT_DOUBLE_EQ(ceilings.cold_read_gbs_at(8 << 20), 30);
  EXPECT_EQ(ceilings.cold_read_gbs_at(16 << 20), 40);
  EXPECT_EQ(ceilings.cold_read_gbs_at(std::int64_t{1} << 40), 40);
}

TEST(Ceilings, SurviveJson) {
  const Json json = to_json(sample());
  EXPECT_EQ(json["schema"], "kbh.ceilings/1");
  EXPECT_EQ(ceilings_from_json(Json::parse(to_text(json)), "test"), sample());
}

TEST(Ceilings, BrokenDocumentsAreRefusedByField) {
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
  EXPECT_EQ(refusal([](Json& j) { j.erase("threads"); }), "file.json: field threads is missing");
  EXPECT_THAT(refusal([](Json& j) { j["threads"] = 0; }), HasSubstr("threads is 0, expected a whole number"));
  EXPECT_THAT(refusal([](Json& j) { j["model"] = 3; }), HasSubstr("model is 3, expected text"));
  EXPECT_THAT(refusal([](Json& j) { j["bandwidth"] = Json::array(); }), HasSubstr("bandwidth is []"));
  EXPECT_THAT(refusal([](Json& j) { j["bandwidth"][1]["read_gbs"] = -1; }), HasSubstr("bandwidth[1].read_gbs is -1"));
  EXPECT_THAT(refusal([](Json& j) { j["bandwidth"][1]["bytes"] = 5; }), HasSubstr("more than the point before"));
  EXPECT_THAT(refusal([](Json& j) { j["bandwidth"][2] = 5; }), HasSubstr("bandwidth[2].bytes is missing"));
  EXPECT_THAT(refusal([](Json& j) { j["peak_gflops"].erase("fp64"); }), HasSubstr("peak_gflops.fp64 is missing"));
  EXPECT_THAT(refusal([](Json& j) { j["peak_gflops"]["fp32"] = "fast"; }), HasSubstr("peak_gflops.fp32 is \"fast\""));
  EXPECT_THAT(refusal([](Json& j) { j["call_floor_us"] = nullptr; }), HasSubstr("call_floor_us is null"));
  EXPECT_EQ(refusal([](Json& j) { j["call_floor_us"] = 0; }), "accepted");
}

/// Ceilings in a cache folder of its own, with a measurement that only counts.
class CachedCeilings : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("KBH_CACHE", folder_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("KBH_CACHE"); }

  Ceilings get(bool again = false) {
    lines_.clear();
    return ceilings(
        again, [this](std::string_view line) { lines_ += fmt::format("{}\n", line); },
        [this](const CeilingsProgress&) {
          Ceilings measured = sample();
          measured.machine = machine_id();
          measured.call_floor_us = ++measurements_;
          return measured;
        });
  }
  [[nodiscard]] fs::path file() const { return folder_.path() / fmt::format("ceilings-{}.json", machine_id()); }

  TempDir folder_;
  std::string lines_;
  int measurements_ = 0;
};

TEST_F(CachedCeilings, MeasuredOnceThenRead) {
  const Ceilings measured = get();
  EXPECT_EQ(get(), measured);
  EXPECT_EQ(measurements_, 1);
  EXPECT_EQ(lines_, "");
}

TEST_F(CachedCeilings, AgainMeasuresAndKeepsTheBetterOfBoth) {
  get();
  EXPECT_EQ(get(true).call_floor_us, 1) << "the second measurement was worse";
  EXPECT_EQ(measurements_, 2);
  Ceilings slow = sample();
  Ceilings fast = sample();
  fast.bandwidth.front().read_gbs *= 2;
  fast.peak_gflops["fp32"] += 1;
  fast.call_floor_us -= 0.5;
  raise_to(slow, fast);
  EXPECT_EQ(slow, fast);
  raise_to(fast, sample());
  EXPECT_EQ(slow, fast) << "worse figures change nothing";
}

TEST_F(CachedCeilings, ABrokenCacheIsMeasuredAgainWithANote) {
  int measured = 0;
  for (const char* content : {"", "{\"schema\": \"kbh.ceilings/1\"}", "{\"schema\": \"kbh.ceilings/9\"}", "[1, 2"}) {
    write_atomic(file(), content);
    EXPECT_EQ(get().call_floor_us, ++measured);
    EXPECT_THAT(lines_, HasSubstr(file().string()));
    EXPECT_THAT(lines_, HasSubstr("measuring again"));
    EXPECT_EQ(get().call_floor_us, measured) << "the new file is sound";
    EXPECT_EQ(lines_, "");
  }
}

TEST_F(CachedCeilings, AnotherMachinesFileIsNotOurs) {
  write_atomic(file(), to_text(to_json(sample())));
  EXPECT_EQ(get().machine, machine_id());
  EXPECT_THAT(lines_, HasSubstr("field machine is m, expected " + machine_id()));
}

// As hastily as can be: that every number is there, not how good it is.
TEST(Ceilings, MeasureThisMachine) {
  std::string lines;
  const Ceilings measured = measure_ceilings(0, [&](std::string_view line) { lines += fmt::format("{}\n", line); });
  EXPECT_THAT(lines, HasSubstr("call floor"));
  EXPECT_THAT(lines, HasSubstr("fp64 multiply-add"));
  EXPECT_THAT(lines, HasSubstr("8 MiB: read"));
  EXPECT_EQ(measured.machine, machine_id());
  EXPECT_EQ(measured.threads, static_cast<int>(topology().processors.size()));
  EXPECT_GE(measured.bandwidth.back().bytes, std::min(4 * measured.llc_bytes, topology().memory_bytes / 8));
  EXPECT_EQ(ceilings_from_json(to_json(measured), "measured").bandwidth, measured.bandwidth);
}

}  // namespace
}  // namespace kbh::cpu
