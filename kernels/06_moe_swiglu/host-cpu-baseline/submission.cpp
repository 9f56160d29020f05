// Mixture-of-experts up-projection with SwiGLU, the plain way: four rows of one expert at a time walk through its
// weights, and the compiler vectorises over the columns. Threads take equal shares of all rows.
//
// state    W_gate, W_up    bf16 (E, H, I)
// inputs   hidden          bf16 (rows, H), in the order of the experts
//          expert_offsets  int32 (E + 1): rows [offsets[e], offsets[e + 1]) belong to expert e
// outputs  out             bf16 (rows, I)
#include <kbh/host.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include <kbh/numbers.hpp>

namespace {

constexpr int64_t kRows = 4;      // that share each weight read
constexpr int64_t kColumns = 64;  // of gate and of up: with four rows, 2 KiB of sums

struct Layer {
  int64_t width, columns, experts;
  const uint16_t* gate;
  const uint16_t* up;
  int64_t threads;
};

/// Sums of gate and up for `kRows` rows and up to `kColumns` columns.
struct Sums {
  float gate[kRows][kColumns];
  float up[kRows][kColumns];
};

/// Adds all terms of `columns` columns that begin at gate and up. Row r's terms are x[r * width .. + width).
template <int64_t Rows>
void add_terms(const float* x, const Layer& layer, const uint16_t* gate, const uint16_t* up, int64_t columns,
               Sums& sums) {
  for (int64_t k = 0; k < layer.width; ++k, gate += layer.columns, up += layer.columns)
    for (int64_t i = 0; i < columns; ++i) {
      const float g = kbh::from_bf16(gate[i]);
      const float u = kbh::from_bf16(up[i]);
      for (int64_t r = 0; r < Rows; ++r) {
        sums.gate[r][i] += x[r * layer.width + k] * g;
        sums.up[r][i] += x[r * layer.width + k] * u;
      }
    }
}

/// `Rows` rows of one expert: hidden and out point at the first.
template <int64_t Rows>
void compute_rows(const Layer& layer, int64_t expert, const uint16_t* hidden, uint16_t* out, std::vector<float>& x) {
  for (int64_t i = 0; i < Rows * layer.width; ++i) x[i] = kbh::from_bf16(hidden[i]);
  for (int64_t begin = 0; begin < layer.columns; begin += kColumns) {
    const int64_t columns = std::min(kColumns, layer.columns - begin);
    const int64_t first = expert * layer.width * layer.columns + begin;
    Sums sums = {};
    add_terms<Rows>(x.data(), layer, layer.gate + first, layer.up + first, columns, sums);
    for (int64_t r = 0; r < Rows; ++r)
      for (int64_t i = 0; i < columns; ++i) {
        const float g = sums.gate[r][i];
        out[r * layer.columns + begin + i] = kbh::to_bf16(g / (1.0f + std::exp(-g)) * sums.up[r][i]);
      }
  }
}

/// Rows [begin, end), whatever experts they belong to.
void compute_share(const Layer& layer, const uint16_t* hidden, const int32_t* offsets, uint16_t* out, int64_t begin,
                   int64_t end) {
  std::vector<float> x(kRows * layer.width);
  for (int64_t e = 0; e < layer.experts; ++e) {
    const int64_t last = std::min<int64_t>(end, offsets[e + 1]);
    int64_t r = std::max<int64_t>(begin, offsets[e]);
    for (; r + kRows <= last; r += kRows)
      compute_rows<kRows>(layer, e, hidden + r * layer.width, out + r * layer.columns, x);
    for (; r < last; ++r) compute_rows<1>(layer, e, hidden + r * layer.width, out + r * layer.columns, x);
  }
}

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  const int64_t* shape = context->state[0].shape;
  *self = new Layer{.width = shape[1],
                    .columns = shape[2],
                    .experts = shape[0],
                    .gate = static_cast<const uint16_t*>(context->state[0].data),
                    .up = static_cast<const uint16_t*>(context->state[1].data),
                    .threads = context->threads};
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<Layer*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Layer& layer = *static_cast<const Layer*>(self);
  const auto* hidden = static_cast<const uint16_t*>(inputs[0].data);
  const auto* offsets = static_cast<const int32_t*>(inputs[1].data);
  auto* out = static_cast<uint16_t*>(outputs[0].data);
  const int64_t rows = inputs[0].shape[0];
  const int64_t threads = std::clamp<int64_t>(rows / 64, 1, layer.threads);

  const auto share = [=, &layer](int64_t t) {
    compute_share(layer, hidden, offsets, out, rows * t / threads, rows * (t + 1) / threads);
  };
  std::vector<std::jthread> helpers;
  for (int64_t t = 1; t < threads; ++t) helpers.emplace_back(share, t);
  share(0);
  return 0;  // jthreads join here
}
