// FP8 matrix product, the plain way: decode to fp32 through a table, multiply a tile of outputs at a time.
//
// state    weight        e4m3 (N, K)
//          weight_scale  fp32 (N)
// inputs   x             e4m3 (M, K)
// outputs  out           bf16 (M, N) = weight_scale[n] * sum over k of x[m][k] * weight[n][k]
#include <kbh/host.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <kbh/numbers.hpp>

namespace {

// A tile of 6 x 64 sums stays in vector registers while K goes by.
constexpr int64_t kRows = 6;
constexpr int64_t kColumns = 64;

std::array<float, 256> e4m3_values() {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) values[code] = kbh::from_e4m3(static_cast<uint8_t>(code));
  return values;
}

struct Layer {
  const uint8_t* weight;
  const float* weight_scale;
  int64_t n;
  std::array<float, 256> value = e4m3_values();
  std::vector<float> x;      // (M, K), M rounded up to whole tiles: the last rows are whatever they were
  std::vector<float> panel;  // (K, kColumns) of weight^T
};

/// Columns [first, first + kColumns) of weight^T; zeros beyond the last.
void decode_panel(Layer& layer, int64_t first, int64_t k) {
  const int64_t columns = std::min(kColumns, layer.n - first);
  if (columns < kColumns) std::fill(layer.panel.begin(), layer.panel.end(), 0.0f);
  for (int64_t j = 0; j < columns; ++j) {
    const uint8_t* row = layer.weight + (first + j) * k;
    for (int64_t p = 0; p < k; ++p) layer.panel[p * kColumns + j] = layer.value[row[p]];
  }
}

/// sums[i][j] = sum over k of x[i][k] * panel[k][j]
void multiply(const float* x, const float* panel, int64_t k, float (&sums)[kRows][kColumns]) {
  float tile[kRows][kColumns] = {};
  for (int64_t p = 0; p < k; ++p)
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kColumns; ++j) tile[i][j] += x[i * k + p] * panel[p * kColumns + j];
  std::copy(&tile[0][0], &tile[0][0] + kRows * kColumns, &sums[0][0]);
}

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new Layer{.weight = static_cast<const uint8_t*>(context->state[0].data),
                    .weight_scale = static_cast<const float*>(context->state[1].data),
                    .n = context->state[0].shape[0]};
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<Layer*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  Layer& layer = *static_cast<Layer*>(self);
  const int64_t m = inputs[0].shape[0], k = inputs[0].shape[1], n = layer.n;
  const auto* x = static_cast<const uint8_t*>(inputs[0].data);
  auto* out = static_cast<uint16_t*>(outputs[0].data);

  layer.x.resize((m + kRows - 1) / kRows * kRows * k);
  layer.panel.resize(k * kColumns);
  std::transform(x, x + m * k, layer.x.begin(), [&](uint8_t code) { return layer.value[code]; });

  float sums[kRows][kColumns];
  for (int64_t first = 0; first < n; first += kColumns) {
    decode_panel(layer, first, k);
    const int64_t columns = std::min(kColumns, n - first);
    for (int64_t row = 0; row < m; row += kRows) {
      multiply(layer.x.data() + row * k, layer.panel.data(), k, sums);
      for (int64_t i = 0; i < std::min(kRows, m - row); ++i)
        for (int64_t j = 0; j < columns; ++j)
          out[(row + i) * n + first + j] = kbh::to_bf16(sums[i][j] * layer.weight_scale[first + j]);
    }
  }
  return 0;
}
