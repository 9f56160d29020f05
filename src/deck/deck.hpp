// A deck: one hardware target, its peaks, and the shapes of each problem on it. Read from decks/NAME.toml.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace kbh {

struct DeckLimits {
  double build_seconds = 120;
  double create_seconds = 60;
  double call_seconds = 10;        // one call of a submission
  double grade_seconds = 600;      // the whole grade
  std::int64_t memory_mib = 4096;  // address space of the worker beyond the buffers it is given
  std::int64_t processes = 256;    // threads
  std::int64_t log_kib = 1024;     // kept of what a submission prints
};

struct DeckSampling {
  int min_samples = 30;
  int max_samples = 200;
  double seconds_per_shape = 1.5;  // budget that picks the count after a pilot
  int check_seeds = 1;             // draws per case and shape
};

struct DeckShape {
  Shape shape;
  Regime regime = Regime::memory;  // which resource binds on this hardware, by true work and least bytes (bounds.hpp)
  double t_base_us = 0;            // the baseline that sol_score starts from, measured once; 0: not measured yet
};

struct Deck {
  std::string name;
  std::string title;
  int version = 1;
  std::string device;                         // "cpu", "cuda" or "metal"
  std::string status;                         // empty, or why nothing can be graded on it ("no runner")
  std::string arch;                           // what sealed submissions are compiled for, "sm_90a"; CUDA decks only
  std::vector<std::string> gpus;              // names of the device as its driver writes them; CUDA decks only
  std::int64_t l2_mib = 0;                    // second-level cache that flushes must exceed; CUDA decks only
  double peak_clock_mhz = 0;                  // the clock at which the datasheet's peaks hold; 0: unknown
  bool measured_peaks = false;                // peaks are the machine's measured ceilings (CPU decks)
  std::map<std::string, double> peak_tflops;  // by dtype name; empty with measured_peaks
  double bandwidth_gbs = 0;
  std::vector<std::string> lanes;
  DeckLimits limits;
  DeckSampling sampling;
  std::map<std::string, std::vector<DeckShape>> shapes;  // by problem id
  std::string sha256;                                    // of the file

  /// Error(usage) when the deck has no shapes for the problem.
  [[nodiscard]] const std::vector<DeckShape>& shapes_of(const Problem& problem) const;

  /// True when every shape has its t_base: from then on the file never changes (release.hpp), and sol_score exists.
  [[nodiscard]] bool released() const;
};

/// Validates everything: unknown keys, types, ranges, shapes outside a problem's domain. Error(usage) names file,
/// field, value, what was expected.
Deck read_deck(const std::filesystem::path& file);

/// By name, from `decks/` of the resource root. Error(usage) with the nearest name when there is none.
Deck find_deck(std::string_view name);

std::vector<std::string> deck_names();

}  // namespace kbh
