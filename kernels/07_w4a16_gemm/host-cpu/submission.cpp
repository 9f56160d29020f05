// W4A16 matrix product near the speed of memory. See README.md for the idea and the figures.
//
// state    w_q      uint8 (K/2, N)    low nibble: even k, high nibble: odd k
//          scales   bf16 (K/128, N)
//          zeros    bf16 (K/128, N)
// inputs   x        bf16 (M, K)
// outputs  out      bf16 (M, N) = x @ ((q - zero) * scale)
#include <kbh/host.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <kbh/crew.hpp>

#include "block.hpp"

namespace {

using namespace w4a16;

/// Weights in the order in which they are read: all groups of 16 columns, then those of the next 16.
class Weights {
 public:
  Weights(const kbh_tensor& w_q, const kbh_tensor& scales, const kbh_tensor& zeros)
      : columns_(w_q.shape[1]), groups_(scales.shape[0]), blocks_(new Block[panels() * groups_]) {
    const auto* q = static_cast<const uint8_t*>(w_q.data);
    const auto* s = static_cast<const uint16_t*>(scales.data);
    const auto* z = static_cast<const uint16_t*>(zeros.data);
    // Group by group and not panel by panel: it is the order of the source.
    for (int64_t g = 0; g < groups_; ++g)
      for (int64_t p = 0; p < panels(); ++p) {
        Block& block = blocks_[p * groups_ + g];
        pack(q + g * (kGroup / 2) * columns_ + p * kColumns, block);
        std::copy_n(s + g * columns_ + p * kColumns, kColumns, block.scales);
        std::copy_n(z + g * columns_ + p * kColumns, kColumns, block.zeros);
      }
  }

  int64_t columns() const { return columns_; }
  int64_t groups() const { return groups_; }
  int64_t panels() const { return columns_ / kColumns; }
  int64_t bytes() const { return panels() * groups_ * int64_t{sizeof(Block)}; }
  const Block* panel(int64_t p) const { return &blocks_[p * groups_]; }

 private:
  void pack(const uint8_t* q, Block& block) const {
    for (int64_t line = 0; line < kLines; ++line) {
      uint32_t(&to)[kColumns] = block.levels[line];
      std::fill_n(to, kColumns, 0u);
      for (int t = 0; t < 4; ++t)
        for (int64_t j = 0; j < kColumns; ++j) {
          const uint32_t pair = q[(line * 4 + t) * columns_ + j];
          to[j] |= ((pair & 15) | (pair >> 4) << 16) << (4 * t);
        }
    }
  }

  int64_t columns_;
  int64_t groups_;
  std::unique_ptr<Block[]> blocks_;
};

/// Sums of up to 16 rows over a whole panel.
template <int kRows>
void multiply_panel(const Block* panel, int64_t groups, const Rows& rows, Sums& sums) {
  for (int64_t g = 0; g < groups; ++g) add_block<kRows>(panel[g], rows, g, sums);
}

using MultiplyPanel = void (*)(const Block*, int64_t, const Rows&, Sums&);

template <size_t... kRows>
constexpr std::array<MultiplyPanel, kMostRows> functions(std::index_sequence<kRows...>) {
  return {multiply_panel<static_cast<int>(kRows) + 1>...};
}
constexpr auto kMultiplyPanel = functions(std::make_index_sequence<kMostRows>());  // [rows - 1]

class Gemm {
 public:
  explicit Gemm(const kbh_context& context)
      : weights_(context.state[0], context.state[1], context.state[2]),
        crew_(std::max(1, context.threads), [this](int) { work(); }) {}

  void run(int64_t m, const uint16_t* x, uint16_t* out) {
    m_ = m;
    given_ = x;
    out_ = out;
    read_x();
    next_.store(0, std::memory_order_relaxed);
    const double cost = static_cast<double>(weights_.bytes()) * static_cast<double>(std::max<int64_t>(1, m / 8));
    helpers_ = static_cast<int>(std::min<double>(cost / kBytesPerHelper, crew_.members() - 1));
    crew_.run(helpers_);
  }

 private:
  // A helper starts 45 to 130 us after the call on a virtual machine; one thread reads 2 MiB in about 100 us.
  static constexpr double kBytesPerHelper = 2 << 20;
  static constexpr int64_t kPadding = 32;  // elements: one cache line

  /// Sums of x over each group, (M, K/128): what the zero points multiply. Beside them several rows are copied a cache
  /// line further apart than K: at a stride of 4096 bytes 16 rows share one set of the first-level cache, which
  /// holds 8.
  void read_x() {
    const int64_t k = weights_.groups() * kGroup;
    stride_ = m_ > 1 ? k + kPadding : k;
    group_sums_.resize(m_ * weights_.groups());
    for (int64_t i = 0; i < m_ * weights_.groups(); ++i) group_sums_[i] = sum_of(given_ + i * kGroup);
    x_ = given_;
    if (m_ == 1) return;
    padded_.resize(m_ * stride_);
    for (int64_t i = 0; i < m_; ++i) std::copy_n(given_ + i * k, k, &padded_[i * stride_]);
    x_ = padded_.data();
  }

  static float sum_of(const uint16_t* x) {
    float sums[kColumns] = {};
    for (int64_t k = 0; k < kGroup; k += kColumns)
      for (int64_t j = 0; j < kColumns; ++j) sums[j] += kbh::from_bf16(x[k + j]);
    float sum = 0;
    for (const float part : sums) sum += part;
    return sum;
  }

  /// Runs of panels, long ones first, so that each thread reads long stretches of memory; single ones last, so that all
  /// end together.
  void work() {
    const int64_t panels = weights_.panels();
    for (int64_t first = next_.load(std::memory_order_relaxed); first < panels;) {
      const int64_t length = std::max<int64_t>(1, (panels - first) / (2 * (helpers_ + 1)));
      if (!next_.compare_exchange_weak(first, first + length, std::memory_order_relaxed)) continue;
      for (int64_t p = first; p < first + length; ++p) multiply(p);
      first = next_.load(std::memory_order_relaxed);
    }
  }

  void multiply(int64_t p) {
    const int64_t groups = weights_.groups();
    for (int64_t i = 0; i < m_; i += kMostRows) {
      const int64_t count = std::min(kMostRows, m_ - i);
      alignas(64) Sums sums = {};
      const Rows rows{x_ + i * stride_, stride_, &group_sums_[i * groups], groups};
      kMultiplyPanel[count - 1](weights_.panel(p), groups, rows, sums);
      for (int64_t r = 0; r < count; ++r)
        for (int64_t j = 0; j < kColumns; ++j)
          out_[(i + r) * weights_.columns() + p * kColumns + j] = kbh::to_bf16(sums[r][j]);
    }
  }

  Weights weights_;
  int64_t m_ = 0;
  const uint16_t* given_ = nullptr;  // x as it came
  const uint16_t* x_ = nullptr;      // x as it is read, its rows `stride_` apart
  int64_t stride_ = 0;
  uint16_t* out_ = nullptr;
  int helpers_ = 0;
  std::vector<uint16_t> padded_;
  std::vector<float> group_sums_;
  alignas(64) std::atomic<int64_t> next_{0};
  kbh::host::Crew crew_;  // last: its threads are gone before the rest is
};

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new Gemm(*context);
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<Gemm*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  static_cast<Gemm*>(self)->run(inputs[0].shape[0], static_cast<const uint16_t*>(inputs[0].data),
                                static_cast<uint16_t*>(outputs[0].data));
  return 0;
}
