#include "device/cuda/ceilings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/fields.hpp"
#include "base/files.hpp"
#include "device/cuda/nvml.hpp"

namespace kbh::cuda {
namespace {

constexpr std::string_view kSchema = "kbh.cuda-ceilings/1";

fs::path cache_file(const DeviceInfo& device) {
  std::string driver = driver_text(device);
  std::replace(driver.begin(), driver.end(), ' ', '-');
  return cache_dir() / fmt::format("ceilings-{}-{}.json", device.uuid, driver);
}

std::optional<Ceilings> read_cache(const DeviceInfo& device, const CeilingsProgress& progress) {
  const fs::path file = cache_file(device);
  if (!fs::exists(file)) return std::nullopt;
  const std::string source = file.string();
  try {
    Ceilings cached = ceilings_from_json(parse_document(read_text(file), kSchema, source), source);
    if (cached.uuid == device.uuid) return cached;
    progress(fmt::format("{}: field uuid is {}, expected {}: measuring again", source, cached.uuid, device.uuid));
  } catch (const Error& error) {
    progress(fmt::format("{}: measuring again", error.what()));
  }
  return std::nullopt;
}

void lower(double& us, double earlier) { us = std::min(us, earlier); }

void raise(MathPeak& peak, const MathPeak& earlier) {
  if (earlier.burst_tflops > peak.burst_tflops) {
    peak.burst_tflops = earlier.burst_tflops;
    peak.loop = earlier.loop;
  }
  if (earlier.sustained_tflops > peak.sustained_tflops) {
    peak.sustained_tflops = earlier.sustained_tflops;
    peak.sustained_mhz = earlier.sustained_mhz;
  }
}

std::vector<BandwidthPoint> points_from(const Fields& fields, const std::string& source) {
  const Json& list = fields.at("bandwidth");
  if (!list.is_array() || list.empty()) fields.refuse("bandwidth", "a list of points");
  std::vector<BandwidthPoint> points;
  for (const Json& json : list) {
    const Fields field(json, source, fmt::format("bandwidth[{}].", points.size()));
    BandwidthPoint point;
    point.bytes = field.count("bytes");
    if (!points.empty() && point.bytes <= points.back().bytes) field.refuse("bytes", "more than the point before");
    point.read_us = field.number("read_us");
    point.write_us = field.number("write_us");
    point.copy_us = field.number("copy_us");
    points.push_back(point);
  }
  return points;
}

std::map<std::string, MathPeak> math_from(const Fields& fields, const std::string& source) {
  const Json& list = fields.at("math");
  if (!list.is_object() || list.empty()) fields.refuse("math", "a peak by dtype");
  std::map<std::string, MathPeak> peaks;
  for (const auto& [dtype, json] : list.items()) {
    const Fields field(json, source, fmt::format("math.{}.", dtype));
    peaks[dtype] = {field.text("loop"), field.number("burst_tflops"), field.number("sustained_tflops"),
                    field.number("sustained_mhz", true)};
  }
  return peaks;
}

LaunchFloors floors_from(const Json& json, const std::string& source) {
  const Fields field(json, source, "floors.");
  LaunchFloors floors;
  floors.nothing_us = field.number("nothing_us", true);
  floors.empty_kernel_us = field.number("empty_kernel_us");
  floors.two_kernels_us = field.number("two_kernels_us");
  floors.graph_us = field.number("graph_us");
  if (field.has("cluster_us")) floors.cluster_us = field.number("cluster_us");
  return floors;
}

}  // namespace

double Ceilings::cold_read_us_at(std::int64_t bytes) const {
  expect(!bandwidth.empty(), "ceilings have points");
  const BandwidthPoint& last = bandwidth.back();
  if (bytes >= last.bytes) return last.read_us * static_cast<double>(bytes) / static_cast<double>(last.bytes);
  BandwidthPoint below;
  below.read_us = floors.empty_kernel_us;
  for (const BandwidthPoint& above : bandwidth) {
    if (bytes <= above.bytes) {
      const double part = static_cast<double>(bytes - below.bytes) / static_cast<double>(above.bytes - below.bytes);
      return below.read_us + part * (above.read_us - below.read_us);
    }
    below = above;
  }
  return last.read_us;
}

double Ceilings::memory_read_gbs() const {
  expect(!bandwidth.empty(), "ceilings have points");
  double best = 0;
  for (const BandwidthPoint& point : bandwidth)
    if (point.bytes >= 4 * l2_bytes) best = std::max(best, point.read_gbs());
  return best > 0 ? best : bandwidth.back().read_gbs();
}

double Ceilings::peak_tflops(std::string_view dtype) const {
  const auto found = math.find(std::string(dtype));
  return found == math.end() ? 0 : std::max(found->second.burst_tflops, found->second.sustained_tflops);
}

void raise_to(Ceilings& ceilings, const Ceilings& earlier) {
  for (BandwidthPoint& point : ceilings.bandwidth)
    for (const BandwidthPoint& before : earlier.bandwidth) {
      if (before.bytes != point.bytes) continue;
      lower(point.read_us, before.read_us);
      lower(point.write_us, before.write_us);
      lower(point.copy_us, before.copy_us);
    }
  for (auto& [dtype, peak] : ceilings.math)
    if (const auto before = earlier.math.find(dtype); before != earlier.math.end()) raise(peak, before->second);
  lower(ceilings.floors.nothing_us, earlier.floors.nothing_us);
  lower(ceilings.floors.empty_kernel_us, earlier.floors.empty_kernel_us);
  lower(ceilings.floors.two_kernels_us, earlier.floors.two_kernels_us);
  lower(ceilings.floors.graph_us, earlier.floors.graph_us);
  if (ceilings.floors.cluster_us && earlier.floors.cluster_us)
    lower(*ceilings.floors.cluster_us, *earlier.floors.cluster_us);
}

std::optional<Ceilings> cached_ceilings(const DeviceInfo& device) {
  return read_cache(device, [](std::string_view) {});
}

Ceilings ceilings(const DeviceInfo& device, bool again, const CeilingsProgress& progress) {
  return ceilings(device, again, progress,
                  [&](const CeilingsProgress& lines) { return measure_ceilings(device, lines); });
}

Ceilings ceilings(const DeviceInfo& device, bool again, const CeilingsProgress& progress,
                  const std::function<Ceilings(const CeilingsProgress&)>& measure) {
  if (!again)
    if (auto cached = read_cache(device, progress)) return *cached;
  Ceilings measured = measure(progress);
  // A ceiling is the best ever seen: a busy moment must not lower it.
  if (const auto cached = cached_ceilings(device)) raise_to(measured, *cached);
  write_atomic(cache_file(device), to_text(to_json(measured)));
  return measured;
}

Json to_json(const Ceilings& ceilings) {
  Json points = Json::array();
  for (const BandwidthPoint& p : ceilings.bandwidth)
    points.push_back({{"bytes", p.bytes},
                      {"read_us", p.read_us},
                      {"read_gbs", p.read_gbs()},
                      {"write_us", p.write_us},
                      {"write_gbs", p.write_gbs()},
                      {"copy_us", p.copy_us},
                      {"copy_gbs", p.copy_gbs()}});
  Json math = Json::object();
  for (const auto& [dtype, peak] : ceilings.math)
    math[dtype] = {{"loop", peak.loop},
                   {"burst_tflops", peak.burst_tflops},
                   {"sustained_tflops", peak.sustained_tflops},
                   {"sustained_mhz", peak.sustained_mhz}};
  const LaunchFloors& f = ceilings.floors;
  Json floors = {{"nothing_us", f.nothing_us},
                 {"empty_kernel_us", f.empty_kernel_us},
                 {"two_kernels_us", f.two_kernels_us},
                 {"graph_us", f.graph_us}};
  if (f.cluster_us) floors["cluster_us"] = *f.cluster_us;
  return {{"schema", kSchema},           {"device", ceilings.device},           {"uuid", ceilings.uuid},
          {"driver", ceilings.driver},   {"measured_at", ceilings.measured_at}, {"l2_bytes", ceilings.l2_bytes},
          {"bus_gbs", ceilings.bus_gbs}, {"bandwidth", std::move(points)},      {"math", std::move(math)},
          {"floors", std::move(floors)}};
}

Ceilings ceilings_from_json(const Json& json, const std::string& source) {
  const Fields fields(json, source, "");
  Ceilings ceilings;
  ceilings.device = fields.text("device");
  ceilings.uuid = fields.text("uuid");
  ceilings.driver = fields.text("driver");
  ceilings.measured_at = fields.text("measured_at");
  ceilings.l2_bytes = fields.count("l2_bytes");
  ceilings.bus_gbs = fields.number("bus_gbs");
  ceilings.bandwidth = points_from(fields, source);
  ceilings.math = math_from(fields, source);
  ceilings.floors = floors_from(fields.at("floors"), source);
  return ceilings;
}

}  // namespace kbh::cuda
