// decks/NAME.toml -> Deck.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "deck/deck.hpp"
#include "deck/section.hpp"
#include "problem/problem_list.hpp"
#include "problem/registry.hpp"

namespace kbh {
namespace {

std::vector<std::string> arithmetic_dtypes() {
  std::vector<std::string> names;
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::e4m3, DType::i8})
    names.emplace_back(name_of(type));
  return names;
}

toml::table parse(const std::string& text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::usage, "{}:{}:{}: not TOML: {}", file, error.source().begin.line, error.source().begin.column,
         error.description());
  }
}

DeckLimits limits_from(const Section& top) {
  DeckLimits limits;
  const auto section = top.section("limits", {"build_seconds", "create_seconds", "call_seconds", "grade_seconds",
                                              "memory_mib", "processes", "log_kib"});
  if (!section) return limits;
  const auto seconds = [&](const char* key, double& value) {
    if (section->has(key)) value = section->number(key, 0.01, 86400);
  };
  const auto count = [&](const char* key, std::int64_t& value, std::int64_t least, std::int64_t most) {
    if (section->has(key)) value = section->integer(key, least, most);
  };
  seconds("build_seconds", limits.build_seconds);
  seconds("create_seconds", limits.create_seconds);
  seconds("call_seconds", limits.call_seconds);
  seconds("grade_seconds", limits.grade_seconds);
  count("memory_mib", limits.memory_mib, 64, 1 << 24);
  count("processes", limits.processes, 1, 1 << 20);
  count("log_kib", limits.log_kib, 1, 1 << 20);
  return limits;
}

DeckSampling sampling_from(const Section& top) {
  DeckSampling sampling;
  const auto section = top.section("sampling", {"min_samples", "max_samples", "seconds_per_shape", "check_seeds"});
  if (!section) return sampling;
  const auto count = [&](const char* key, int& value, std::int64_t most) {
    if (section->has(key)) value = static_cast<int>(section->integer(key, 1, most));
  };
  count("min_samples", sampling.min_samples, 100'000);
  count("max_samples", sampling.max_samples, 100'000);
  count("check_seeds", sampling.check_seeds, 1'000);
  if (section->has("seconds_per_shape")) sampling.seconds_per_shape = section->number("seconds_per_shape", 0.01, 3600);
  if (sampling.min_samples > sampling.max_samples)
    section->refuse(fmt::format("min_samples is {} and max_samples is {}, expected min_samples <= max_samples",
                                sampling.min_samples, sampling.max_samples));
  return sampling;
}

/// Peaks are either measured on the machine that grades, or stand in the file; never both.
void read_peaks(const Section& top, Deck& deck) {
  deck.measured_peaks = top.flag("measured_peaks", false);
  const auto peaks = top.section("peak_tflops", arithmetic_dtypes());
  if (deck.measured_peaks) {
    if (peaks || top.has("bandwidth_gbs"))
      top.refuse("measured_peaks is true, expected no peak_tflops and no bandwidth_gbs beside it");
    return;
  }
  if (!peaks || peaks->keys().empty())
    top.refuse("[peak_tflops] is missing: list the peaks by dtype, or set measured_peaks = true");
  for (const std::string& dtype : peaks->keys()) deck.peak_tflops[dtype] = peaks->number(dtype, 1e-6, 1e6);
  if (!peaks->has("fp32")) peaks->refuse("fp32 is missing: every problem falls back on it");
  deck.bandwidth_gbs = top.number("bandwidth_gbs", 1e-3, 1e6);
}

/// Devices that code is compiled for have an architecture, and a cache that is not measured.
void read_device(const Section& top, Deck& deck) {
  deck.device = top.text_of("device", {"cpu", "cuda", "metal"});
  if (deck.device != "cuda") {
    for (const char* key : {"arch", "gpus", "l2_mib", "peak_clock_mhz"})
      if (top.has(key)) top.refuse(key, "nothing: it belongs to decks with device = \"cuda\"");
    return;
  }
  deck.arch = top.text("arch");
  const bool digits =
      deck.arch.starts_with("sm_") && deck.arch.size() >= 5 &&
      std::all_of(deck.arch.begin() + 3, deck.arch.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) top.refuse("arch", "an architecture of nvcc's, such as \"sm_90a\"");
  deck.gpus = top.texts("gpus");
  deck.l2_mib = top.integer("l2_mib", 1, 1 << 14);
  if (top.has("peak_clock_mhz")) deck.peak_clock_mhz = top.number("peak_clock_mhz", 100, 10'000);
}

/// Sealed submissions are device code; only CUDA decks run it.
std::vector<std::string> lanes_of(const std::string& device) {
  if (device == "cuda") return {"sealed", "host", "python"};
  return {"host", "python"};
}

/// Every dimension of the problem, nothing else, inside its domain.
DeckShape shape_from(const Section& section, const Problem& problem) {
  DeckShape listed{.shape = {}, .regime = problem.regime};
  for (const std::string& dim : problem.dims) listed.shape.dims.emplace_back(dim, section.integer(dim, 0));
  if (const auto wrong = problem.outside_domain(listed.shape))
    section.refuse(fmt::format("shape {} lies outside the domain of {}: {}", listed.shape.text(), problem.id, *wrong));
  if (section.has("regime"))
    listed.regime = section.text_of("regime", {"memory", "compute"}) == "memory" ? Regime::memory : Regime::compute;
  if (section.has("t_base_us")) listed.t_base_us = section.number("t_base_us", 1e-3, 1e9);
  return listed;
}

std::vector<DeckShape> shapes_from(const Section& problems, const Problem& problem) {
  std::vector<std::string> known = problem.dims;
  known.insert(known.end(), {"regime", "t_base_us"});
  std::vector<DeckShape> shapes;
  for (const Section& section : problems.sections(problem.id, known)) {
    const DeckShape shape = shape_from(section, problem);
    const auto same = [&](const DeckShape& other) { return other.shape == shape.shape; };
    if (std::any_of(shapes.begin(), shapes.end(), same))
      section.refuse(fmt::format("shape {} stands there twice: remove one", shape.shape.text()));
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace

Deck read_deck(const std::filesystem::path& file) {
  const std::string name = file.string();
  const std::string text = read_text(file);
  const toml::table table = parse(text, name);
  const Section top(table, "", name,
                    {"title", "version", "device", "status", "arch", "gpus", "l2_mib", "peak_clock_mhz", "lanes",
                     "measured_peaks", "bandwidth_gbs", "peak_tflops", "limits", "sampling", "problems"});
  Deck deck;
  deck.name = file.stem().string();
  deck.title = top.text("title");
  deck.version = static_cast<int>(top.integer("version", 1, 1'000'000));
  read_device(top, deck);
  if (top.has("status")) deck.status = top.text("status");
  deck.lanes = top.texts_of("lanes", lanes_of(deck.device));
  read_peaks(top, deck);
  deck.limits = limits_from(top);
  deck.sampling = sampling_from(top);

  const std::vector<std::string>& ids = problem_ids();
  const auto problems = top.section("problems", ids);
  if (!problems || problems->keys().empty())
    top.refuse("no problem has a shape: add a table such as [[problems." + ids.front() + "]]");
  for (const Problem& problem : all_problems())
    if (problems->has(problem.id)) deck.shapes[problem.id] = shapes_from(*problems, problem);
  deck.sha256 = sha256_hex(text);
  return deck;
}

}  // namespace kbh
