// W4A16 matrix product near the speed of memory. See README.md for the idea and the figures.
//
// state    w_q      uint8 (K/2, N)    low nibble: even k, high nibble: odd k
//          scales   bf16 (K/128, N)
//          zeros    bf16 (K/128, N)
// inputs   x        bf16 (M, K)
// outputs  out      bf16 (M, N) = x @ ((q - zero) * scale)
#include <kbh/host.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <kbh/crew.hpp>

#include "block.hpp"

namespace {

using namespace w4a16;

/// Memory in huge pages where the system has them: a new page every 2 MiB instead of every 4 KiB.
class Blocks {
 public:
  explicit Blocks(size_t count) {
    const size_t bytes = (count * sizeof(Block) + kHugePage - 1) / kHugePage * kHugePage;
    memory_.reset(static_cast<Block*>(::operator new(bytes, std::align_val_t{kHugePage})));
    ::madvise(memory_.get(), bytes, MADV_HUGEPAGE);  // advice: small pages serve as well, slower
  }
  Block& operator[](int64_t i) const { return memory_[i]; }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  struct Free {
    void operator()(Block* memory) const { ::operator delete(memory, std::align_val_t{kHugePage}); }
  };
  std::unique_ptr<Block[], Free> memory_;
};

/// Weights in the order in which they are read: all groups of 16 columns, then those of the next 16.
class Weights {
 public:
  Weights(const kbh_tensor& w_q, const kbh_tensor& scales, const kbh_tensor& zeros)
      : columns_(w_q.shape[1]), groups_(scales.shape[0]), blocks_(static_cast<size_t>(panels() * groups_)) {
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
  Blocks blocks_;
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
    x_ = x;
    out_ = out;
    pairs_.resize(m * pairs_of_row());
    sums_.resize(m * weights_.groups());
    next_slab_.store(0, std::memory_order_relaxed);
    ready_slabs_.store(0, std::memory_order_relaxed);
    next_panel_.store(0, std::memory_order_relaxed);
    const double cost = static_cast<double>(weights_.bytes()) * static_cast<double>(std::max<int64_t>(1, m / 8));
    helpers_ = static_cast<int>(std::min<double>(cost / kBytesPerHelper, crew_.members() - 1));
    crew_.run(helpers_);
  }

 private:
  // A helper starts 45 to 130 us after the call on a virtual machine; one thread reads 2 MiB in about 100 us.
  static constexpr double kBytesPerHelper = 2 << 20;

  /// Up to 16 rows of x that meet the weights together.
  int64_t slabs() const { return (m_ + kMostRows - 1) / kMostRows; }
  int64_t rows_of(int64_t slab) const { return std::min(kMostRows, m_ - slab * kMostRows); }
  int64_t pairs_of_row() const { return weights_.groups() * kGroup / 2; }

  void work() {
    for (int64_t slab = next_slab_++; slab < slabs(); slab = next_slab_++) {
      read(slab);
      ready_slabs_.fetch_add(1, std::memory_order_release);
    }
    while (ready_slabs_.load(std::memory_order_acquire) < slabs()) std::this_thread::yield();
    multiply_panels();
  }

  /// Puts rows of x in the order in which they are read, and sums each group: what the zero points multiply.
  void read(int64_t slab) {
    const int64_t count = rows_of(slab);
    for (int64_t group = 0; group < weights_.groups(); ++group)
      for (int64_t r = 0; r < count; ++r) {
        const int64_t row = slab * kMostRows + r;
        const uint16_t* x = x_ + (row * weights_.groups() + group) * kGroup;
        uint32_t* pairs = &pairs_[slab * kMostRows * pairs_of_row() + group * (kGroup / 2) * count + r];
        for (int64_t k = 0; k < kGroup; k += 2) std::memcpy(pairs + k / 2 * count, x + k, sizeof *pairs);
        sums_[slab * kMostRows * weights_.groups() + group * count + r] = sum_of(x);
      }
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
  void multiply_panels() {
    const int64_t panels = weights_.panels();
    for (int64_t first = next_panel_.load(std::memory_order_relaxed); first < panels;) {
      const int64_t length = std::max<int64_t>(1, (panels - first) / (2 * (helpers_ + 1)));
      if (!next_panel_.compare_exchange_weak(first, first + length, std::memory_order_relaxed)) continue;
      for (int64_t p = first; p < first + length; ++p) multiply(p);
      first = next_panel_.load(std::memory_order_relaxed);
    }
  }

  void multiply(int64_t p) {
    const int64_t groups = weights_.groups();
    for (int64_t slab = 0; slab < slabs(); ++slab) {
      const int64_t first = slab * kMostRows, count = rows_of(slab);
      alignas(64) Sums sums = {};
      const Rows rows{&pairs_[first * pairs_of_row()], &sums_[first * groups]};
      kMultiplyPanel[count - 1](weights_.panel(p), groups, rows, sums);
      for (int64_t r = 0; r < count; ++r)
        for (int64_t j = 0; j < kColumns; ++j)
          out_[(first + r) * weights_.columns() + p * kColumns + j] = kbh::to_bf16(sums[r][j]);
    }
  }

  Weights weights_;
  int64_t m_ = 0;
  const uint16_t* x_ = nullptr;
  uint16_t* out_ = nullptr;
  int helpers_ = 0;
  std::vector<uint32_t> pairs_;  // of each slab (K/2, rows)
  std::vector<float> sums_;      // of each slab (K/128, rows)
  alignas(64) std::atomic<int64_t> next_slab_{0};
  alignas(64) std::atomic<int64_t> ready_slabs_{0};
  alignas(64) std::atomic<int64_t> next_panel_{0};
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
