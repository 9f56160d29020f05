// What this machine can do, measured: the peaks of a CPU deck.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace kbh::cpu {

struct BandwidthPoint {
  std::int64_t bytes = 0;  // working set over all threads
  double read_gbs = 0;     // 1e9 bytes per second
  double write_gbs = 0;
  double copy_gbs = 0;     // bytes read plus bytes written
  double cold_read_gbs = 0;  // one pass after a cache flush, as a cold sample sees it
};

struct Ceilings {
  std::string machine;       // machine_id()
  std::string model;
  int threads = 0;
  std::string measured_at;   // ISO 8601
  std::vector<BandwidthPoint> bandwidth;          // rising working sets, 256 KiB .. 512 MiB
  std::map<std::string, double> peak_gflops;      // fused multiply-add, all threads: "fp32", "fp64"
  double call_floor_us = 0;  // an empty parallel region over all processors: start and join a sleeping pool

  /// Best sustained bandwidth from memory (working sets beyond 4x the last-level cache): the "datasheet" of a CPU deck.
  [[nodiscard]] double memory_read_gbs() const;
  /// Cold read bandwidth for one pass over `bytes`, interpolated in log(bytes).
  [[nodiscard]] double cold_read_gbs_at(std::int64_t bytes) const;
};

/// Measures everything; `seconds` bounds the time (about 3 by default). `progress` gets one line per step.
Ceilings measure_ceilings(double seconds, const std::function<void(std::string_view)>& progress);

/// From the cache when it was measured on this machine, else measured and stored. `again` measures in any case.
Ceilings ceilings(bool again, const std::function<void(std::string_view)>& progress);

Json to_json(const Ceilings& ceilings);                  // schema kbh.ceilings/1
Ceilings ceilings_from_json(const Json& json, const std::string& source);

}  // namespace kbh::cpu
