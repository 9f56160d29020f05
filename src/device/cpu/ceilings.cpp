#include "device/cpu/ceilings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/fields.hpp"
#include "base/files.hpp"
#include "device/cpu/simd_kernels.hpp"
#include "device/cpu/topology.hpp"

namespace kbh::cpu {
namespace {

constexpr std::string_view kSchema = "kbh.ceilings/1";
constexpr double kUsualSeconds = 3;

std::vector<BandwidthPoint> points_from(const Fields& fields, const std::string& source) {
  const Json& list = fields.at("bandwidth");
  if (!list.is_array() || list.empty()) fields.refuse("bandwidth", "a list of points");
  std::vector<BandwidthPoint> points;
  for (const Json& json : list) {
    const Fields point(json, source, fmt::format("bandwidth[{}].", points.size()));
    const std::int64_t bytes = point.count("bytes");
    if (!points.empty() && bytes <= points.back().bytes) point.refuse("bytes", "more than the point before");
    points.push_back({bytes, point.number("read_gbs"), point.number("write_gbs"), point.number("copy_gbs"),
                      point.number("cold_read_gbs")});
  }
  return points;
}

/// A file of an earlier release may lack a peak that this one measures.
bool has_all_peaks(const Ceilings& ceilings) {
  return !simd_kernels().front().dot_bf16 || ceilings.peak_gflops.contains("bf16");
}

fs::path cache_file() { return cache_dir() / fmt::format("ceilings-{}.json", machine_id()); }

std::optional<Ceilings> read_cache(const fs::path& file, const CeilingsProgress& progress) {
  if (!fs::exists(file)) return std::nullopt;
  try {
    const std::string source = file.string();
    Ceilings cached = ceilings_from_json(parse_document(read_text(file), kSchema, source), source);
    if (cached.machine == machine_id() && has_all_peaks(cached)) return cached;
    if (cached.machine == machine_id()) {
      progress(fmt::format("{}: has no bf16 peak yet: measuring again", source));
      return std::nullopt;
    }
    progress(
        fmt::format("{}: field machine is {}, expected {}: measuring again", source, cached.machine, machine_id()));
  } catch (const Error& error) {
    progress(fmt::format("{}: measuring again", error.what()));
  }
  return std::nullopt;
}

}  // namespace

double Ceilings::memory_read_gbs() const {
  expect(!bandwidth.empty(), "ceilings have points");
  double best = 0;
  for (const BandwidthPoint& point : bandwidth)
    if (point.bytes >= 4 * llc_bytes) best = std::max(best, point.read_gbs);
  return best > 0 ? best : bandwidth.back().read_gbs;
}

double Ceilings::cold_read_gbs_at(std::int64_t bytes) const {
  expect(!bandwidth.empty(), "ceilings have points");
  const auto above = std::lower_bound(bandwidth.begin(), bandwidth.end(), bytes,
                                      [](const BandwidthPoint& point, std::int64_t b) { return point.bytes < b; });
  if (above == bandwidth.begin()) return above->cold_read_gbs;
  if (above == bandwidth.end()) return bandwidth.back().cold_read_gbs;
  const auto below = above - 1;
  const auto log = [](std::int64_t b) { return std::log(static_cast<double>(b)); };
  const double part = (log(bytes) - log(below->bytes)) / (log(above->bytes) - log(below->bytes));
  return below->cold_read_gbs + part * (above->cold_read_gbs - below->cold_read_gbs);
}

std::optional<Ceilings> cached_ceilings() {
  return read_cache(cache_file(), [](std::string_view) {});
}

Ceilings ceilings(bool again, const CeilingsProgress& progress) {
  return ceilings(again, progress,
                  [](const CeilingsProgress& lines) { return measure_ceilings(kUsualSeconds, lines); });
}

void raise_to(Ceilings& ceilings, const Ceilings& earlier) {
  for (BandwidthPoint& point : ceilings.bandwidth)
    for (const BandwidthPoint& before : earlier.bandwidth) {
      if (before.bytes != point.bytes) continue;
      point.read_gbs = std::max(point.read_gbs, before.read_gbs);
      point.write_gbs = std::max(point.write_gbs, before.write_gbs);
      point.copy_gbs = std::max(point.copy_gbs, before.copy_gbs);
      point.cold_read_gbs = std::max(point.cold_read_gbs, before.cold_read_gbs);
    }
  for (auto& [dtype, gflops] : ceilings.peak_gflops)
    if (const auto before = earlier.peak_gflops.find(dtype); before != earlier.peak_gflops.end())
      gflops = std::max(gflops, before->second);
  ceilings.call_floor_us = std::min(ceilings.call_floor_us, earlier.call_floor_us);
}

Ceilings ceilings(bool again, const CeilingsProgress& progress,
                  const std::function<Ceilings(const CeilingsProgress&)>& measure) {
  const fs::path file = cache_file();
  if (!again)
    if (auto cached = read_cache(file, progress)) return *cached;
  Ceilings measured = measure(progress);
  // A ceiling is the best ever seen: a busy moment must not lower it.
  if (auto cached = read_cache(file, [](std::string_view) {})) raise_to(measured, *cached);
  write_atomic(file, to_text(to_json(measured)));
  return measured;
}

Json to_json(const Ceilings& ceilings) {
  Json points = Json::array();
  for (const BandwidthPoint& point : ceilings.bandwidth)
    points.push_back({{"bytes", point.bytes},
                      {"read_gbs", point.read_gbs},
                      {"write_gbs", point.write_gbs},
                      {"copy_gbs", point.copy_gbs},
                      {"cold_read_gbs", point.cold_read_gbs}});
  Json peaks = Json::object();
  for (const auto& [dtype, gflops] : ceilings.peak_gflops) peaks[dtype] = gflops;
  return {{"schema", kSchema},
          {"machine", ceilings.machine},
          {"model", ceilings.model},
          {"isa", ceilings.isa},
          {"threads", ceilings.threads},
          {"llc_bytes", ceilings.llc_bytes},
          {"measured_at", ceilings.measured_at},
          {"bandwidth", std::move(points)},
          {"peak_gflops", std::move(peaks)},
          {"call_floor_us", ceilings.call_floor_us}};
}

Ceilings ceilings_from_json(const Json& json, const std::string& source) {
  const Fields fields(json, source, "");
  Ceilings ceilings;
  ceilings.machine = fields.text("machine");
  ceilings.model = fields.text("model");
  ceilings.isa = fields.text("isa");
  ceilings.threads = static_cast<int>(fields.count("threads"));
  ceilings.llc_bytes = fields.count("llc_bytes");
  ceilings.measured_at = fields.text("measured_at");
  ceilings.bandwidth = points_from(fields, source);
  const Fields peaks(fields.at("peak_gflops"), source, "peak_gflops.");
  for (const char* dtype : {"fp32", "fp64"}) ceilings.peak_gflops[dtype] = peaks.number(dtype);
  if (peaks.has("bf16")) ceilings.peak_gflops["bf16"] = peaks.number("bf16");
  ceilings.call_floor_us = fields.number("call_floor_us", true);
  return ceilings;
}

}  // namespace kbh::cpu
