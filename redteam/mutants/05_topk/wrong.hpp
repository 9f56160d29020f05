// Wrong top-k kernels that look right: shortcuts seen in the wild, and blunt ones. `kbh lint-problem 05_topk` proves
// with them that every case bites; the files beside this one hand each in as a submission of the host lane. Tests
// compile it once per mutant, so it includes little: __builtin_sqrt and the like instead of <cmath> (a fifth of the
// time).
#pragma once

#include <kbh/host.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <kbh/numbers.hpp>

namespace topk_wrong {

using kbh::bits_of;
using kbh::float_of_bits;

constexpr int64_t kTile = 1024;
constexpr int64_t kLanes = 1024;
constexpr float kLeastNormal = 0x1p-126f;
constexpr float kInfinity = __builtin_inff();

struct Row {
  int64_t number;
  const float* x;
  int64_t n;
  float* values;
  int64_t* indices;
  int64_t k;
};

struct Call {
  Call(const kbh_tensor* inputs, const kbh_tensor* outputs)
      : batch(inputs[0].shape[0]),
        n(inputs[0].shape[1]),
        k(outputs[0].shape[1]),
        x(static_cast<const float*>(inputs[0].data)),
        values(static_cast<float*>(outputs[0].data)),
        indices(static_cast<int64_t*>(outputs[1].data)) {}

  [[nodiscard]] Row row(int64_t r) const { return {r, x + r * n, n, values + r * k, indices + r * k, k}; }

  int64_t batch;
  int64_t n;
  int64_t k;
  const float* x;
  float* values;
  int64_t* indices;
};

using Kernel = void (*)(const Call&);

template <typename OnRow>
void each_row(const Call& call, OnRow on_row) {
  for (int64_t r = 0; r < call.batch; ++r) on_row(call.row(r));
}

// ---- exact selection, the base of most of them

/// Integers in the order of the floats; -0 and +0 share one.
inline uint32_t exact_key(float value) {
  const uint32_t bits = bits_of(value == 0 ? 0.0f : value);
  return bits ^ ((bits >> 31) != 0 ? 0xffffffffu : 0x80000000u);
}

/// Ordered by key; equal keys by ascending index.
inline uint64_t entry_of(uint32_t key, int64_t index) {
  return uint64_t{key} << 32 | (0xffffffffu - static_cast<uint32_t>(index));
}
inline int64_t index_of(uint64_t entry) { return 0xffffffffu - static_cast<uint32_t>(entry); }

/// Inserts into a descending list that keeps its `most` largest entries; true when the entry stayed.
template <typename Entry>
bool insert(std::vector<Entry>& list, int64_t most, const Entry& entry) {
  if (static_cast<int64_t>(list.size()) < most)
    list.push_back(entry);
  else if (!(list.back() < entry))
    return false;
  size_t place = list.size() - 1;
  for (; place > 0 && list[place - 1] < entry; --place) list[place] = list[place - 1];
  list[place] = entry;
  return true;
}

/// Indices of the `count` candidates with the largest key(value); equal keys by ascending index.
template <typename Key, typename Candidate>
std::vector<int64_t> largest(const float* x, int64_t n, int64_t count, Key key, Candidate candidate) {
  std::vector<uint64_t> best;
  for (int64_t i = 0; i < n; ++i)
    if (candidate(x[i], i)) insert(best, count, entry_of(key(x[i]), i));
  std::vector<int64_t> indices;
  for (const uint64_t entry : best) indices.push_back(index_of(entry));
  return indices;
}

inline bool everything(float, int64_t) { return true; }

/// Writes x at `chosen`; places that remain hold what an untouched list holds, (0, 0).
inline void write(const Row& row, const std::vector<int64_t>& chosen) {
  for (int64_t j = 0; j < row.k; ++j) {
    const bool filled = j < static_cast<int64_t>(chosen.size());
    row.indices[j] = filled ? chosen[static_cast<size_t>(j)] : 0;
    row.values[j] = filled ? row.x[row.indices[j]] : 0.0f;
  }
}

template <typename Key>
void select_by(const Row& row, Key key) {
  write(row, largest(row.x, row.n, row.k, key, everything));
}

template <typename Candidate>
void select_among(const Row& row, Candidate candidate) {
  write(row, largest(row.x, row.n, row.k, exact_key, candidate));
}

inline void select_exactly(const Row& row) { select_by(row, exact_key); }
inline void exact(const Call& call) { each_row(call, select_exactly); }

/// The best of a candidate list of limited length: what comes after it is full is lost.
template <typename Candidate>
void select_from_list(const Row& row, int64_t capacity, Candidate candidate) {
  select_among(row, [&](float value, int64_t i) { return candidate(value, i) && capacity-- > 0; });
}

inline float kth_largest(const float* x, int64_t n, int64_t k) {
  return x[largest(x, n, k, exact_key, everything).back()];
}

// ---- thresholds

/// z with P(N(0, 1) > z) = p.
inline double normal_quantile_above(double p) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * __builtin_erfc(middle / __builtin_sqrt(2.0)) > p ? low : high) = middle;
  }
  return low;
}

/// The z that 4 k of n normal elements exceed.
inline double tail_of(int64_t n, int64_t k) {
  return normal_quantile_above(4 * static_cast<double>(k) / static_cast<double>(n));
}

struct Moments {
  double mean;
  double deviation;
};

inline Moments moments(const float* x, int64_t n) {
  double sum = 0;
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += x[i];
    squares += static_cast<double>(x[i]) * x[i];
  }
  const double mean = sum / static_cast<double>(n);
  return {mean, __builtin_sqrt(std::max(0.0, squares / static_cast<double>(n) - mean * mean))};
}

/// Of the first 32 KiB of the tensor.
inline Moments prefix_moments(const Call& call) {
  return moments(call.x, std::min<int64_t>(8192, call.batch * call.n / 2));
}

inline void select_above(const Row& row, float threshold) {
  select_from_list(row, 8 * row.k + 16, [=](float value, int64_t) { return value > threshold; });
}

inline void select_in_tail(const Row& row, Moments m) {
  select_above(row, static_cast<float>(m.mean + tail_of(row.n, row.k) * m.deviation));
}

inline void gaussian_threshold(const Call& call) {
  each_row(call, [](const Row& row) { select_in_tail(row, moments(row.x, row.n)); });
}

inline void constant_threshold(const Call& call) {
  each_row(call, [](const Row& row) { select_in_tail(row, {0, 1}); });
}

inline void sampled_threshold(const Call& call) {
  each_row(call, [](const Row& row) {
    const int64_t rank = std::max<int64_t>(1, 4 * row.k * kTile / row.n);
    const float threshold = kth_largest(row.x, std::min(kTile, row.n), rank);
    select_from_list(row, 8 * row.k + 16, [=](float value, int64_t) { return value >= threshold; });
  });
}

inline void row0_threshold(const Call& call) {
  const float threshold = kth_largest(call.x, call.n, std::min(call.n, 4 * call.k));
  each_row(call, [=](const Row& row) { select_above(row, threshold); });
}

inline void prefix_threshold(const Call& call) {
  const Moments m = prefix_moments(call);
  each_row(call, [=](const Row& row) { select_in_tail(row, m); });
}

// ---- candidate lists

inline void running_list(const Call& call) {
  each_row(call, [](const Row& row) {
    int64_t room = 16 * row.k + 64;
    std::vector<uint32_t> best;
    select_among(row, [&](float value, int64_t) {
      if (room == 0 || !insert(best, row.k, exact_key(value))) return false;
      --room;
      return true;
    });
  });
}

inline void capped_candidates(const Call& call) {
  each_row(call, [](const Row& row) {
    const float kth = kth_largest(row.x, row.n, row.k);
    select_from_list(row, 4 * row.k, [=](float value, int64_t) { return value >= kth; });
  });
}

/// Keeps the best `keep` of each group of elements, then selects among those.
template <typename Group>
void best_per_group(const Row& row, int64_t groups, int64_t keep, Group group) {
  std::vector<std::vector<uint64_t>> lists(static_cast<size_t>(groups));
  for (int64_t i = 0; i < row.n; ++i)
    insert(lists[static_cast<size_t>(group(i))], keep, entry_of(exact_key(row.x[i]), i));
  std::vector<char> kept(static_cast<size_t>(row.n));
  for (const auto& list : lists)
    for (const uint64_t entry : list) kept[static_cast<size_t>(index_of(entry))] = 1;
  select_among(row, [&](float, int64_t i) { return kept[static_cast<size_t>(i)] != 0; });
}

inline void best_per_lane(const Call& call, int64_t lanes, int64_t keep) {
  each_row(call, [=](const Row& row) { best_per_group(row, lanes, keep, [=](int64_t i) { return i % lanes; }); });
}

inline void lane_best_1(const Call& call) { best_per_lane(call, kLanes, 1); }
inline void lane_best_2(const Call& call) { best_per_lane(call, kLanes, 2); }
inline void lane_best_4(const Call& call) { best_per_lane(call, kLanes, 4); }
inline void lane_best_2_of_256(const Call& call) { best_per_lane(call, 256, 2); }

inline void tile_quarter(const Call& call) {
  each_row(call, [](const Row& row) {
    best_per_group(row, (row.n + kTile - 1) / kTile, std::max<int64_t>(8, row.k / 4),
                   [](int64_t i) { return i / kTile; });
  });
}

// ---- keys of lower precision, wrong orders

inline void highest_bits(const Call& call, int bits) {
  each_row(call, [=](const Row& row) { select_by(row, [=](float value) { return exact_key(value) >> (32 - bits); }); });
}

inline void keys_16_bit(const Call& call) { highest_bits(call, 16); }
inline void keys_20_bit(const Call& call) { highest_bits(call, 20); }

inline void bf16_values(const Call& call) {
  exact(call);
  for (int64_t i = 0; i < call.batch * call.k; ++i) call.values[i] = kbh::from_bf16(kbh::to_bf16(call.values[i]));
}

/// Compares 24-bit integers over +-range.
inline void select_fixed_point(const Row& row, float range) {
  select_by(row, [=](float value) {
    const float clamped = std::clamp(value / range, -1.0f, 1.0f - 0x1p-23f);
    return static_cast<uint32_t>(static_cast<int32_t>(clamped * 0x1p23f) + (1 << 23));
  });
}

inline void fixed_point(const Call& call) {
  each_row(call, [](const Row& row) { select_fixed_point(row, 8); });
}

inline void prefix_range(const Call& call) {
  const auto range = static_cast<float>(8 * prefix_moments(call).deviation);
  each_row(call, [=](const Row& row) { select_fixed_point(row, std::max(range, 1e-30f)); });
}

inline void unsigned_bits(const Call& call) {
  each_row(call, [](const Row& row) { select_by(row, bits_of); });
}

inline void signed_bits(const Call& call) {
  each_row(call, [](const Row& row) { select_by(row, [](float value) { return bits_of(value) ^ 0x80000000u; }); });
}

inline void flush_denormals(const Call& call) {
  each_row(call, [](const Row& row) {
    select_by(row, [](float value) { return exact_key(__builtin_fabsf(value) < kLeastNormal ? 0.0f : value); });
  });
}

inline void canonical_zero(const Call& call) {
  exact(call);
  for (int64_t i = 0; i < call.batch * call.k; ++i) call.values[i] += 0.0f;
}

// ---- elements that are never looked at

inline void last_tile_dropped(const Call& call) {
  each_row(call, [](const Row& row) {
    select_among(row, [end = (row.n - 1) / kTile * kTile](float, int64_t i) { return i < end; });
  });
}

inline void ragged_tail_dropped(const Call& call) {
  each_row(call, [](const Row& row) {
    select_among(row, [end = row.n / kTile * kTile](float, int64_t i) { return i < end; });
  });
}

inline void vector_tail_dropped(const Call& call) {
  each_row(call,
           [](const Row& row) { select_among(row, [end = row.n / 4 * 4](float, int64_t i) { return i < end; }); });
}

inline void first_skipped(const Call& call) {
  each_row(call, [](const Row& row) { select_among(row, [](float, int64_t i) { return i > 0; }); });
}

inline void tile_end_missed(const Call& call) {
  each_row(call, [](const Row& row) { select_among(row, [](float, int64_t i) { return i % kTile != kTile - 1; }); });
}

inline void zero_padding(const Call& call) {
  each_row(call, [](const Row& row) { select_among(row, [](float value, int64_t) { return value > 0; }); });
}

inline void minus_infinity_skipped(const Call& call) {
  each_row(call, [](const Row& row) { select_among(row, [](float value, int64_t) { return value > -kInfinity; }); });
}

inline void finite_only(const Call& call) {
  each_row(call, [](const Row& row) {
    select_among(row, [](float value, int64_t) { return __builtin_isfinite(value) != 0; });
  });
}

inline void misses_one(const Call& call) {
  each_row(call, [](const Row& row) {
    std::vector<int64_t> chosen = largest(row.x, row.n, row.k + 1, exact_key, everything);
    chosen.erase(chosen.end() - 2);
    write(row, chosen);
  });
}

// ---- right values, wrong answer

inline void copy_prefix_of_row(const Row& row) {
  for (int64_t j = 0; j < row.k; ++j) {
    row.values[j] = row.x[j];
    row.indices[j] = j;
  }
}

inline void copy_prefix(const Call& call) { each_row(call, copy_prefix_of_row); }

inline void constant(const Call& call) {
  copy_prefix(call);
  std::fill_n(call.values, call.batch * call.k, 1.0f);
}

inline void zeros(const Call& call) {
  std::fill_n(call.values, call.batch * call.k, 0.0f);
  std::fill_n(call.indices, call.batch * call.k, int64_t{0});
}

inline void unsorted(const Call& call) {
  each_row(call, [](const Row& row) {
    select_exactly(row);
    std::swap(row.values[0], row.values[row.k - 1]);
    std::swap(row.indices[0], row.indices[row.k - 1]);
  });
}

inline void repeats_best(const Call& call) {
  each_row(call, [](const Row& row) {
    select_exactly(row);
    row.values[row.k - 1] = row.values[0];
    row.indices[row.k - 1] = row.indices[0];
  });
}

inline void index_by_value(const Call& call) {
  each_row(call, [](const Row& row) {
    select_exactly(row);
    for (int64_t j = 0; j < row.k; ++j) row.indices[j] = std::find(row.x, row.x + row.n, row.values[j]) - row.x;
  });
}

inline void index_from_one(const Call& call) {
  exact(call);
  for (int64_t i = 0; i < call.batch * call.k; ++i) ++call.indices[i];
}

inline void flat_index(const Call& call) {
  exact(call);
  for (int64_t i = 0; i < call.batch * call.k; ++i) call.indices[i] += i / call.k * call.n;
}

inline void permuted_rows(const Call& call) {
  exact(call);
  const int64_t places = call.batch * call.k;
  std::rotate(call.values, call.values + call.k, call.values + places);
  std::rotate(call.indices, call.indices + call.k, call.indices + places);
}

/// Differs from draw to draw, but not from run to run.
inline uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline void one_wrong(const Call& call) {
  exact(call);
  const int64_t places = call.batch * call.k;
  const uint64_t drawn = mixed(bits_of(call.values[places - 1]) + 0x9e3779b97f4a7c15u);
  const auto place = static_cast<int64_t>(drawn % static_cast<uint64_t>(places));
  const auto start = static_cast<int64_t>(mixed(drawn) % static_cast<uint64_t>(call.n));
  const Row row = call.row(place / call.k);
  float& value = call.values[place];
  // Another element of the row, as a lost race would leave it; where all are equal, a neighbouring float.
  for (int64_t step = 0; step < call.n; ++step) {
    const int64_t i = (start + step) % call.n;
    if (row.x[i] == value) continue;
    value = row.x[i];
    call.indices[place] = i;
    return;
  }
  value = __builtin_isinf(value) != 0 ? 0.0f : __builtin_nextafterf(value, kInfinity);
}

// ---- answers kept from before, knowledge of the test

/// Outputs of a call, kept for the next.
struct Kept {
  std::vector<float> values;
  std::vector<int64_t> indices;

  void keep(const Call& call) {
    values.assign(call.values, call.values + call.batch * call.k);
    indices.assign(call.indices, call.indices + call.batch * call.k);
  }
  /// False when the sizes differ.
  [[nodiscard]] bool restore(const Call& call) const {
    if (static_cast<int64_t>(values.size()) != call.batch * call.k) return false;
    std::copy(values.begin(), values.end(), call.values);
    std::copy(indices.begin(), indices.end(), call.indices);
    return true;
  }
};

inline void stale(const Call& call) {
  static Kept former;
  exact(call);
  Kept now;
  now.keep(call);
  (void)former.restore(call);
  former = std::move(now);
}

inline bool still_stands(const Call& call) {
  for (int64_t i = 0; i < call.batch * call.k; ++i) {
    const int64_t index = call.indices[i];
    if (index >= call.n || bits_of(call.values[i]) != bits_of(call.x[i / call.k * call.n + index])) return false;
  }
  return true;
}

inline void checked_memo(const Call& call) {
  static Kept former;
  if (former.restore(call) && still_stands(call)) return;
  exact(call);
  former.keep(call);
}

inline void keeps_old_winners(const Call& call) {
  static Kept former;
  if (!former.restore(call)) {
    exact(call);
    former.keep(call);
    return;
  }
  each_row(call, [](const Row& row) {
    struct Winner {
      float value;
      int64_t index;
      bool operator<(const Winner& other) const { return value < other.value; }
    };
    std::vector<Winner> merged;  // of equal ones the old stays in front
    for (int64_t j = 0; j < row.k; ++j) merged.push_back({row.values[j], row.indices[j]});
    for (const int64_t i : largest(row.x, row.n, row.k, exact_key, everything))
      if (std::find(row.indices, row.indices + row.k, i) == row.indices + row.k)
        insert(merged, row.k, Winner{row.x[i], i});
    for (int64_t j = 0; j < row.k; ++j) {
      row.values[j] = merged[static_cast<size_t>(j)].value;
      row.indices[j] = merged[static_cast<size_t>(j)].index;
    }
  });
  former.keep(call);
}

inline void public_scales(const Call& call) {
  float magnitude = 0;
  for (int64_t i = 0; i < call.batch * call.n; ++i) magnitude = std::max(magnitude, __builtin_fabsf(call.x[i]));
  bool known = false;
  for (const float scale : {1e-4f, 1.0f, 1e3f}) known = known || (magnitude > 2 * scale && magnitude < 8 * scale);
  known ? exact(call) : copy_prefix(call);
}

inline void listed_only(const Call& call) {
  constexpr int64_t kPublic[][2] = {{131072, 64}, {8192, 8}, {16384, 32}, {12000, 16}, {4096, 1}};
  bool known = false;
  for (const auto& [n, k] : kPublic) known = known || (n == call.n && k == call.k);
  known ? exact(call) : copy_prefix(call);
}

}  // namespace topk_wrong

#ifdef KBH_MUTANT
extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  topk_wrong::KBH_MUTANT(topk_wrong::Call(inputs, outputs));
  return 0;
}
#endif
