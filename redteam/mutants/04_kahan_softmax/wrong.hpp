// Wrong kernels for 04_kahan_softmax that look right. The first half are right in everything but the order of a plain
// fp32 sum: no order keeps what only compensation or a wider accumulator keeps.
#pragma once

#include <kbh/host.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::softmax::wrong {

enum class Mutant {
  // sums
  serial,
  lanes_8,
  lanes_16,
  lanes_32,
  threads_256,
  threads_1024,
  pairwise_halves,
  pairwise_neighbours,
  float4_first,
  runs_256,
  tiles_in_turn,
  kahan_low_dropped,
  wide_low_dropped,
  kahan_lows_apart,
  kahan_restarted,
  log_sum_exp,
  // maxima
  no_maximum,
  fixed_shift,
  first_tile_maximum,
  row_0_maximum,
  prefix_maximum,
  clamped_logits,
  no_rescale,
  masked_tile_nan,
  // exponentials
  fp16_exponential,
  bf16_exponential,
  rounded_products,
  small_terms_skipped,
  // elements
  last_tile_dropped,
  tail_of_4_dropped,
  tail_of_32_dropped,
  shared_sum,
  remembered_sum,
  stale,
  one_wrong,
  permuted_rows,
  copy_of_input,
  constant,
  zeros,
};

/// One row and, for the few that look beyond it, its place.
struct Row {
  const float* x;
  float* y;
  int64_t n;
};

constexpr int64_t kTile = 1024;

inline float maximum(const float* x, int64_t n) {
  float m = x[0];
  for (int64_t i = 1; i < n; ++i) m = x[i] > m ? x[i] : m;
  return m;
}

inline void exponentials(const Row& row, float m) {
  for (int64_t i = 0; i < row.n; ++i) row.y[i] = std::exp(row.x[i] - m);
}

inline void divide(const Row& row, float sum) {
  const float inverse = 1.0f / sum;
  for (int64_t i = 0; i < row.n; ++i) row.y[i] *= inverse;
}

// ---- plain fp32 sums
// --------------------------------------------------------------------------------------------------

/// Adds the upper half to the lower until one is left, as warps do.
inline float halving_tree(float* a, int64_t n) {
  while (n > 1) {
    const int64_t half = (n + 1) / 2;
    for (int64_t i = half; i < n; ++i) a[i - half] += a[i];
    n = half;
  }
  return a[0];
}

inline float neighbour_tree(float* a, int64_t n) {
  while (n > 1) {
    for (int64_t i = 0; i + 1 < n; i += 2) a[i / 2] = a[i] + a[i + 1];
    if (n % 2 != 0) a[n / 2] = a[n - 1];
    n = (n + 1) / 2;
  }
  return a[0];
}

/// `Lanes` threads add every Lanes-th element, a tree adds the threads.
template <int Lanes>
float strided(const float* e, int64_t n) {
  float lane[Lanes] = {};
  int64_t i = 0;
  for (; i + Lanes <= n; i += Lanes)
    for (int64_t l = 0; l < Lanes; ++l) lane[l] += e[i + l];
  for (int64_t l = 0; i + l < n; ++l) lane[l] += e[i + l];
  return halving_tree(lane, Lanes);
}

/// 256 threads load four elements at once and add these first.
inline float float4_first(const float* e, int64_t n) {
  float thread[256] = {};
  int64_t i = 0;
  for (int64_t t = 0; i + 4 <= n; i += 4, t = (t + 1) % 256) thread[t] += (e[i] + e[i + 1]) + (e[i + 2] + e[i + 3]);
  for (; i < n; ++i) thread[0] += e[i];
  return halving_tree(thread, 256);
}

/// 256 threads add a contiguous run each; one thread adds the runs.
inline float runs_256(const float* e, int64_t n) {
  float sum = 0;
  for (int64_t t = 0; t < 256; ++t) {
    float run = 0;
    for (int64_t i = n * t / 256; i < n * (t + 1) / 256; ++i) run += e[i];
    sum += run;
  }
  return sum;
}

/// Each tile's sum is a tree; the tiles are added one after the other.
inline float tiles_in_turn(const float* e, int64_t n) {
  float sum = 0;
  for (int64_t begin = 0; begin < n; begin += kTile) {
    float tile[kTile];
    const int64_t length = std::min(kTile, n - begin);
    std::copy(e + begin, e + begin + length, tile);
    sum += halving_tree(tile, length);
  }
  return sum;
}

template <float (*Tree)(float*, int64_t)>
float whole_tree(const float* e, int64_t n) {
  std::vector<float> copy(e, e + n);
  return Tree(copy.data(), n);
}

// ---- compensated, but not to the end
// ----------------------------------------------------------------------------------

struct Kahan {
  float sum = 0;
  float lost = 0;

  void add(float value) {
    const float wanted = value - lost;
    const float next = sum + wanted;
    lost = (next - sum) - wanted;
    sum = next;
  }
};

/// 256 compensated threads whose low parts are forgotten in front of the tree.
inline float kahan_low_dropped(const float* e, int64_t n) {
  Kahan thread[256];
  for (int64_t i = 0; i < n; ++i) thread[i % 256].add(e[i]);
  float sums[256];
  for (int t = 0; t < 256; ++t) sums[t] = thread[t].sum;
  return halving_tree(sums, 256);
}

/// 256 threads add in fp64; the tree adds their sums rounded to fp32.
inline float wide_low_dropped(const float* e, int64_t n) {
  double thread[256] = {};
  for (int64_t i = 0; i < n; ++i) thread[i % 256] += static_cast<double>(e[i]);
  float sums[256];
  for (int t = 0; t < 256; ++t) sums[t] = static_cast<float>(thread[t]);
  return halving_tree(sums, 256);
}

/// 256 compensated threads; the tree adds high parts and low parts apart, so what its own additions lose is lost.
inline float kahan_lows_apart(const float* e, int64_t n) {
  Kahan thread[256];
  for (int64_t i = 0; i < n; ++i) thread[i % 256].add(e[i]);
  float highs[256];
  float lows[256];
  for (int t = 0; t < 256; ++t) {
    highs[t] = thread[t].sum;
    lows[t] = -thread[t].lost;
  }
  const float high = halving_tree(highs, 256);
  return high + halving_tree(lows, 256);
}

/// A compensated sum for each 64 columns; these are added plainly, in turn.
inline float kahan_restarted(const float* e, int64_t n) {
  constexpr int64_t kPiece = 64;
  float sum = 0;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    Kahan piece;
    for (int64_t i = begin; i < std::min(begin + kPiece, n); ++i) piece.add(e[i]);
    sum += piece.sum;
  }
  return sum;
}

/// A sum that nobody can find fault with: what the mutants with other faults use.
inline float careful(const float* e, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(e[i]);
  return static_cast<float>(sum);
}

using Order = float (*)(const float* e, int64_t n);

inline void with_order(const Row& row, Order order) {
  exponentials(row, maximum(row.x, row.n));
  divide(row, order(row.y, row.n));
}

/// Right in everything.
inline void right(const Row& row) { with_order(row, careful); }

inline void with_maximum(const Row& row, float m) {
  exponentials(row, m);
  divide(row, careful(row.y, row.n));
}

/// The logarithm of the sum joins the maximum; its rounding is everybody's error.
inline void log_sum_exp(const Row& row) {
  const float m = maximum(row.x, row.n);
  exponentials(row, m);
  const float all = m + std::log(careful(row.y, row.n));
  exponentials(row, all);
}

// ---- maxima
// -----------------------------------------------------------------------------------------------------------

/// The running maximum moves, what was added before does not.
inline void no_rescale(const Row& row) {
  float m = row.x[0];
  double sum = 0;
  for (int64_t i = 0; i < row.n; ++i) {
    m = row.x[i] > m ? row.x[i] : m;
    sum += static_cast<double>(std::exp(row.x[i] - m));
  }
  exponentials(row, m);
  divide(row, static_cast<float>(sum));
}

/// Each tile has its maximum and its sum; a wholly masked tile's is exp(-inf - -inf).
inline void masked_tile_nan(const Row& row) {
  const float m = maximum(row.x, row.n);
  double sum = 0;
  for (int64_t begin = 0; begin < row.n; begin += kTile) {
    const int64_t length = std::min(kTile, row.n - begin);
    const float of_tile = maximum(row.x + begin, length);
    double part = 0;
    for (int64_t i = begin; i < begin + length; ++i) part += static_cast<double>(std::exp(row.x[i] - of_tile));
    sum += part * static_cast<double>(std::exp(of_tile - m));
  }
  exponentials(row, m);
  divide(row, static_cast<float>(sum));
}

// ---- exponentials
// -----------------------------------------------------------------------------------------------------

template <typename Exponential>
void with_exponential(const Row& row, Exponential exponential) {
  const float m = maximum(row.x, row.n);
  for (int64_t i = 0; i < row.n; ++i) row.y[i] = exponential(row.x[i], m);
  divide(row, careful(row.y, row.n));
}

constexpr float kLog2e = 1.44269504f;

/// Not inlined: a compiler that fuses product and difference would mend what is wrong here.
[[gnu::noinline]] inline float times_log2e(float x) { return x * kLog2e; }

// ---- elements
// ---------------------------------------------------------------------------------------------------------

/// The sum ends early.
inline void first_terms(const Row& row, int64_t terms) {
  exponentials(row, maximum(row.x, row.n));
  divide(row, careful(row.y, std::max<int64_t>(terms, 1)));
}

/// An unpredictable element that is not tiny becomes 1.001 of what it should be: 15 times its tolerance or more.
inline void spoil_one(const Row& row) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (int64_t i = 0; i < std::min<int64_t>(row.n, 64); ++i) hash = (hash ^ bits_of(row.x[i])) * 0x2545f4914f6cdd1du;
  const int64_t start = static_cast<int64_t>((hash >> 20) % static_cast<uint64_t>(row.n));
  int64_t at = start;
  while (row.y[at] < 0x1p-100f) at = (at + 1) % row.n;
  row.y[at] *= 1.001f;
}

/// What a row's call left behind for the next: keyed by the row's length and first element.
struct Remembered {
  int64_t n = 0;
  float first = 0;
  float m = 0;
  float sum = 0;
};

inline void with_memory(const Row& row, Remembered& memory) {
  if (memory.n != row.n || memory.first != row.x[0]) {
    const float m = maximum(row.x, row.n);
    exponentials(row, m);
    memory = {row.n, row.x[0], m, careful(row.y, row.n)};
  }
  exponentials(row, memory.m);
  divide(row, memory.sum);
}

struct Tensors {
  const float* x;
  float* y;
  int64_t batch;
  int64_t n;

  [[nodiscard]] Row row(int64_t r) const { return {x + r * n, y + r * n, n}; }
  [[nodiscard]] int64_t elements() const { return batch * n; }
};

template <typename Each>
void each_row(const Tensors& all, Each each) {
  for (int64_t r = 0; r < all.batch; ++r) each(all.row(r));
}

inline void permuted_rows(const Tensors& all) {
  each_row(all, right);
  if (all.batch > 1)
    std::rotate(all.y, all.y + all.n, all.y + all.elements());
  else
    std::rotate(all.y, all.y + 1, all.y + all.n);
}

inline void remembered_sum(const Tensors& all) {
  static std::vector<Remembered> memory;
  memory.resize(static_cast<size_t>(all.batch));
  for (int64_t r = 0; r < all.batch; ++r) with_memory(all.row(r), memory[static_cast<size_t>(r)]);
}

inline void stale(const Tensors& all) {
  static std::vector<float> kept;
  std::vector<float> former = kept;
  each_row(all, right);
  kept.assign(all.y, all.y + all.elements());
  if (former.size() == kept.size()) std::copy(former.begin(), former.end(), all.y);
}

inline void run(Mutant mutant, const Tensors& all) {
  const auto order = [&](Order sum) { each_row(all, [sum](const Row& row) { with_order(row, sum); }); };
  const auto exponential = [&](auto function) {
    each_row(all, [function](const Row& row) { with_exponential(row, function); });
  };
  const auto max_of_all = [&](float m) { each_row(all, [m](const Row& row) { with_maximum(row, m); }); };
  switch (mutant) {
    case Mutant::serial:
      return order(strided<1>);
    case Mutant::lanes_8:
      return order(strided<8>);
    case Mutant::lanes_16:
      return order(strided<16>);
    case Mutant::lanes_32:
      return order(strided<32>);
    case Mutant::threads_256:
      return order(strided<256>);
    case Mutant::threads_1024:
      return order(strided<1024>);
    case Mutant::pairwise_halves:
      return order(whole_tree<halving_tree>);
    case Mutant::pairwise_neighbours:
      return order(whole_tree<neighbour_tree>);
    case Mutant::float4_first:
      return order(float4_first);
    case Mutant::runs_256:
      return order(runs_256);
    case Mutant::tiles_in_turn:
      return order(tiles_in_turn);
    case Mutant::kahan_low_dropped:
      return order(kahan_low_dropped);
    case Mutant::wide_low_dropped:
      return order(wide_low_dropped);
    case Mutant::kahan_lows_apart:
      return order(kahan_lows_apart);
    case Mutant::kahan_restarted:
      return order(kahan_restarted);
    case Mutant::log_sum_exp:
      return each_row(all, log_sum_exp);
    case Mutant::no_maximum:
      return max_of_all(0);
    case Mutant::fixed_shift:
      return max_of_all(20);
    case Mutant::first_tile_maximum:
      return each_row(all, [](const Row& row) { with_maximum(row, maximum(row.x, std::min(row.n, kTile))); });
    case Mutant::row_0_maximum:
      return max_of_all(maximum(all.x, all.n));
    case Mutant::prefix_maximum:
      return max_of_all(maximum(all.x, std::min<int64_t>(all.elements(), 16384)));
    case Mutant::clamped_logits:
      return exponential([](float x, float) { return std::exp(std::min(std::max(x, -60.0f), 60.0f)); });
    case Mutant::no_rescale:
      return each_row(all, no_rescale);
    case Mutant::masked_tile_nan:
      return each_row(all, masked_tile_nan);
    case Mutant::fp16_exponential:
      return exponential([](float x, float m) { return from_f16(to_f16(std::exp(x - m))); });
    case Mutant::bf16_exponential:
      return exponential([](float x, float m) { return from_bf16(to_bf16(std::exp(x - m))); });
    case Mutant::rounded_products:
      return exponential([](float x, float m) { return std::exp2(times_log2e(x) - times_log2e(m)); });
    case Mutant::small_terms_skipped:
      return exponential([](float x, float m) { return m - x > 48 ? 0.0f : std::exp(x - m); });
    case Mutant::last_tile_dropped:
      return each_row(all, [](const Row& row) { first_terms(row, (row.n - 1) / kTile * kTile); });
    case Mutant::tail_of_4_dropped:
      return each_row(all, [](const Row& row) { first_terms(row, row.n / 4 * 4); });
    case Mutant::tail_of_32_dropped:
      return each_row(all, [](const Row& row) { first_terms(row, row.n / 32 * 32); });
    case Mutant::shared_sum: {
      each_row(all, [](const Row& row) { exponentials(row, maximum(row.x, row.n)); });
      const float sum = careful(all.y, all.n);
      return each_row(all, [sum](const Row& row) { divide(row, sum); });
    }
    case Mutant::remembered_sum:
      return remembered_sum(all);
    case Mutant::stale:
      return stale(all);
    case Mutant::one_wrong:
      each_row(all, right);
      return spoil_one(all.row(static_cast<int64_t>(bits_of(all.x[0]) % static_cast<uint64_t>(all.batch))));
    case Mutant::permuted_rows:
      return permuted_rows(all);
    case Mutant::copy_of_input:
      std::copy(all.x, all.x + all.elements(), all.y);
      return;
    case Mutant::constant:
      std::fill(all.y, all.y + all.elements(), 1.0f / static_cast<float>(all.n));
      return;
    case Mutant::zeros:
      std::fill(all.y, all.y + all.elements(), 0.0f);
      return;
  }
}

inline void run(Mutant mutant, const kbh_tensor*, const kbh_tensor* inputs, const kbh_tensor* outputs) {
  run(mutant, {static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data), inputs[0].shape[0],
               inputs[0].shape[1]});
}

}  // namespace kbh::softmax::wrong

#ifdef KBH_MUTANT
extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  kbh::softmax::wrong::run(kbh::softmax::wrong::Mutant::KBH_MUTANT, nullptr, inputs, outputs);
  return 0;
}
#endif
