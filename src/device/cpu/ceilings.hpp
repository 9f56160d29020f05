// What this machine can do, measured: the peaks of a CPU deck.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace kbh::cpu {

struct BandwidthPoint {
  std::int64_t bytes = 0;  // working set over all threads
  double read_gbs = 0;     // 1e9 bytes per second, pass after pass over the same memory
  double write_gbs = 0;
  double copy_gbs = 0;       // bytes read plus bytes written
  double cold_read_gbs = 0;  // one pass after a cache flush, as a cold sample sees it

  bool operator==(const BandwidthPoint&) const = default;
};

/// Each number is the faster quartile of its samples, for the best of the loops tried: a ceiling is what the machine
/// gives when its neighbours let it.
struct Ceilings {
  std::string machine;  // machine_id()
  std::string model;
  std::string isa;  // of the loops that moved the bytes
  int threads = 0;
  std::int64_t llc_bytes = 0;
  std::string measured_at;                    // ISO 8601, UTC
  std::vector<BandwidthPoint> bandwidth;      // rising working sets, 256 KiB to 256 MiB or 4x the last-level cache
  std::map<std::string, double> peak_gflops;  // fused multiply-add, all threads: "fp32", "fp64", and
                                              // "bf16" where the processor multiplies it
  double call_floor_us = 0;  // an empty parallel region over all processors: start and join a sleeping pool

  /// Best sustained bandwidth from memory (working sets from 4x the last-level cache on, else the largest): the
  /// "datasheet" of a CPU deck.
  [[nodiscard]] double memory_read_gbs() const;
  /// Cold read bandwidth for one pass over `bytes`, interpolated in log(bytes).
  [[nodiscard]] double cold_read_gbs_at(std::int64_t bytes) const;

  bool operator==(const Ceilings&) const = default;
};

using CeilingsProgress = std::function<void(std::string_view)>;

/// Measures everything; `seconds` is how long it may take, about: every number gets a few samples in any case.
/// `progress` gets one line per step.
Ceilings measure_ceilings(double seconds, const CeilingsProgress& progress);

/// From the cache when it was measured on this machine, else measured (in about three seconds) and stored. `again`
/// measures in any case. A cache file that cannot be read is measured again, with a line to `progress` that says why.
Ceilings ceilings(bool again, const CeilingsProgress& progress);

/// The same with another way to measure.
Ceilings ceilings(bool again, const CeilingsProgress& progress,
                  const std::function<Ceilings(const CeilingsProgress&)>& measure);

/// What was measured on this machine before; nothing when it never was, or the file cannot be read.
std::optional<Ceilings> cached_ceilings();

/// Raises every figure to the better of the two (the call floor: lowers it).
void raise_to(Ceilings& ceilings, const Ceilings& earlier);

Json to_json(const Ceilings& ceilings);  // schema kbh.ceilings/1

/// Error(usage) names source, field, value and what was expected.
Ceilings ceilings_from_json(const Json& json, const std::string& source);

}  // namespace kbh::cpu
