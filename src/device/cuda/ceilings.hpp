// What a GPU can do, measured: what a submission's time is held against.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "device/cuda/device.hpp"

namespace kbh::cuda {

/// Microseconds of one launch after a clean flush, launch included.
struct BandwidthPoint {
  std::int64_t bytes = 0;  // read, or written; of a copy, one half is read and the other written
  double read_us = 0;
  double write_us = 0;  // what still lies in the cache at the end is not waited for
  double copy_us = 0;

  [[nodiscard]] double read_gbs() const { return gbs(read_us); }  // 1e9 bytes per second
  [[nodiscard]] double write_gbs() const { return gbs(write_us); }
  [[nodiscard]] double copy_gbs() const { return gbs(copy_us); }
  bool operator==(const BandwidthPoint&) const = default;

 private:
  [[nodiscard]] double gbs(double us) const { return static_cast<double>(bytes) / us * 1e-3; }
};

/// Dense products of one format.
struct MathPeak {
  std::string loop;             // the fastest: "wgmma, 2 warpgroups"
  double burst_tflops = 0;      // one launch of about 100 us
  double sustained_tflops = 0;  // half a second and more: where power limits the clock
  double sustained_mhz = 0;     // that clock; 0: unknown
  bool operator==(const MathPeak&) const = default;
};

/// Microseconds between two events around ...
struct LaunchFloors {
  double nothing_us = 0;
  double empty_kernel_us = 0;
  double two_kernels_us = 0;
  double graph_us = 0;               // one empty kernel in a graph
  std::optional<double> cluster_us;  // one empty cluster of 8 blocks; nothing where there are none
  bool operator==(const LaunchFloors&) const = default;
};

/// Each number is the faster quartile of its samples, for the best of the loops tried: no kernel should beat it.
struct Ceilings {
  std::string device;       // "NVIDIA H200"
  std::string uuid;         // "GPU-..."
  std::string driver;       // "580.159.04"
  std::string measured_at;  // ISO 8601, UTC
  std::int64_t l2_bytes = 0;
  double bus_gbs = 0;                     // DeviceInfo::bus_gbs(), to compare with
  std::vector<BandwidthPoint> bandwidth;  // rising, 256 KiB to 4 GiB
  std::map<std::string, MathPeak> math;   // by dtype, as decks name them, and "tf32"
  LaunchFloors floors;

  /// What one launch needs to read `bytes` cold: linear between the points, from an empty kernel at 0, in proportion
  /// past the last.
  [[nodiscard]] double cold_read_us_at(std::int64_t bytes) const;
  /// Best cold read among the sizes of at least four times the second-level cache; else of the largest.
  [[nodiscard]] double memory_read_gbs() const;
  /// The better of burst and sustained; 0 when nothing was measured in this dtype.
  [[nodiscard]] double peak_tflops(std::string_view dtype) const;
  [[nodiscard]] double launch_floor_us() const { return floors.empty_kernel_us; }

  bool operator==(const Ceilings&) const = default;
};

using CeilingsProgress = std::function<void(std::string_view)>;

/// Measures everything, in less than 15 seconds on an H200. `progress` gets one line per step.
Ceilings measure_ceilings(const DeviceInfo& device, const CeilingsProgress& progress);

/// From the cache when they were measured on this device under this driver, else measured and stored. `again` measures
/// in any case; what was measured before is only ever raised.
Ceilings ceilings(const DeviceInfo& device, bool again, const CeilingsProgress& progress);

/// The same with another way to measure.
Ceilings ceilings(const DeviceInfo& device, bool again, const CeilingsProgress& progress,
                  const std::function<Ceilings(const CeilingsProgress&)>& measure);

/// What was measured on this device before; nothing when it never was, or the file cannot be read.
std::optional<Ceilings> cached_ceilings(const DeviceInfo& device);

/// Raises every figure to the better of the two (times: lowers them).
void raise_to(Ceilings& ceilings, const Ceilings& earlier);

Json to_json(const Ceilings& ceilings);  // schema kbh.cuda-ceilings/1

/// Error(usage) names source, field, value and what was expected.
Ceilings ceilings_from_json(const Json& json, const std::string& source);

}  // namespace kbh::cuda
