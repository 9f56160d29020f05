#include "cli/bounds.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/json.hpp"
#include "base/statistics.hpp"
#include "deck/bounds.hpp"
#include "device/cpu/ceilings.hpp"
#include "grade/limits.hpp"
#include "problem/registry.hpp"
#include "report/table.hpp"

namespace kbh::cli {
namespace {

/// One problem on one deck; no bounds where the peaks are not known.
struct ProblemBounds {
  const Problem& problem;
  const std::vector<DeckShape>& shapes;
  std::vector<Bound> bounds;

  [[nodiscard]] double upstream_ceiling() const {
    std::vector<double> ceilings;
    for (const Bound& bound : bounds) ceilings.push_back(bound.upstream_ceiling());
    return geometric_mean(ceilings);
  }
};

std::optional<Peaks> peaks_of(const Deck& deck) {
  if (!deck.measured_peaks) return datasheet_peaks(deck);
  if (const auto cached = cpu::cached_ceilings()) return measured_peaks(*cached);
  return std::nullopt;
}

std::vector<ProblemBounds> bounds_on(const Deck& deck, const std::optional<Peaks>& peaks) {
  std::vector<ProblemBounds> all;
  for (const Problem& problem : all_problems()) {
    const auto found = deck.shapes.find(problem.id);
    if (found == deck.shapes.end()) continue;
    ProblemBounds one{problem, found->second, {}};
    if (peaks)
      for (const DeckShape& listed : one.shapes) one.bounds.push_back(bound_of(problem, listed.shape, *peaks));
    all.push_back(std::move(one));
  }
  return all;
}

Json to_json(const Bound& bound) {
  return {{"compute_us", bound.compute_us},     {"memory_us", bound.memory_us},
          {"roofline_us", bound.roofline_us()}, {"binds", name_of(bound.binds())},
          {"upstream_us", bound.upstream_us},   {"upstream_ceiling", bound.upstream_ceiling()}};
}

Json to_json(const ProblemBounds& one) {
  Json shapes = Json::array();
  for (std::size_t i = 0; i < one.shapes.size(); ++i) {
    const Shape& shape = one.shapes[i].shape;
    const Work work = one.problem.work(shape);
    Json dims = Json::object();
    for (const auto& [name, value] : shape.dims) dims[name] = value;
    shapes.push_back({{"shape", dims},
                      {"regime", name_of(one.shapes[i].regime)},
                      {"flops", work.flops},
                      {"flops_dtype", name_of(work.flops_dtype)},
                      {"min_bytes", work.min_bytes}});
    if (!one.bounds.empty()) shapes.back().update(to_json(one.bounds[i]));
  }
  Json json = {{"id", one.problem.id}, {"version", one.problem.version}, {"shapes", shapes}};
  if (!one.bounds.empty()) json["upstream_ceiling"] = one.upstream_ceiling();
  return json;
}

Json document(const Deck& deck, const std::optional<Peaks>& peaks, const std::vector<ProblemBounds>& all) {
  Json problems = Json::array();
  for (const ProblemBounds& one : all) problems.push_back(to_json(one));
  Json json = {{"schema", "kbh.bounds/1"},
               {"deck", {{"name", deck.name}, {"version", deck.version}, {"sha256", deck.sha256}}},
               {"peaks", "unavailable"},
               {"problems", problems}};
  if (peaks)
    json["peaks"] = {{"source", deck.measured_peaks ? "measured on this machine" : "datasheet"},
                     {"tflops", peaks->tflops},
                     {"bandwidth_gbs", peaks->bandwidth_gbs}};
  return json;
}

/// Three digits, never an exponent.
std::string microseconds(double us) { return us < 999.5 ? fmt::format("{:.3g}", us) : fmt::format("{:.0f}", us); }

std::string table_of(const std::vector<ProblemBounds>& all) {
  Table table{{"problem", "shape", "flops us", "bytes us", "roofline us", "binds", "upstream at most"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left, Align::right},
              {}};
  for (const ProblemBounds& one : all) {
    for (std::size_t i = 0; i < one.shapes.size(); ++i) {
      const Bound& bound = one.bounds[i];
      table.rows.push_back({i == 0 ? one.problem.id : "", one.shapes[i].shape.text(), microseconds(bound.compute_us),
                            microseconds(bound.memory_us), microseconds(bound.roofline_us()),
                            std::string(name_of(bound.binds())), fmt::format("{:.3f}", bound.upstream_ceiling())});
    }
    table.rows.push_back({"", "geometric mean", "", "", "", "", fmt::format("{:.3f}", one.upstream_ceiling())});
  }
  return table.text();
}

std::string table_of_work(const std::vector<ProblemBounds>& all) {
  Table table{
      {"problem", "shape", "flops", "bytes at least"}, {Align::left, Align::left, Align::right, Align::right}, {}};
  for (const ProblemBounds& one : all)
    for (std::size_t i = 0; i < one.shapes.size(); ++i) {
      const Work work = one.problem.work(one.shapes[i].shape);
      table.rows.push_back({i == 0 ? one.problem.id : "", one.shapes[i].shape.text(), fmt::format("{:.3g}", work.flops),
                            fmt::format("{:.0f}", work.min_bytes)});
    }
  return table.text();
}

}  // namespace

int print_bounds(const Deck& deck, bool json) {
  const std::optional<Peaks> peaks = peaks_of(deck);
  const std::vector<ProblemBounds> all = bounds_on(deck, peaks);
  if (json) return fmt::print("{}", to_text(document(deck, peaks, all))), 0;
  fmt::print("{} (deck {}, version {}){}\n\n", deck.title, deck.name, deck.version,
             deck.status.empty() ? "" : ": " + deck.status);
  if (!peaks) {
    fmt::print("{}\nIts peaks are this machine's ceilings, which nobody has measured yet: `kbh ceilings` does.\n",
               table_of_work(all));
    return 0;
  }
  fmt::print(
      "{}\nflops us and bytes us: true work at {} peaks; the larger binds. upstream at most: what the public\n"
      "benchmark's formula can reach at that time.\n",
      table_of(all), deck.measured_peaks ? "this machine's measured" : "datasheet");
  return 0;
}

}  // namespace kbh::cli
