// Kimi Delta Attention, forward, the plain way: fp32, chunk after chunk of 64 tokens; threads share out batches and
// heads.
//
// inputs   q, k  bf16 (B, T, H, K)
//          v     bf16 (B, T, H, V)
//          g     fp32 (B, T, H, K), logarithms of the gates
//          beta  bf16 (B, T, H)
// outputs  o     bf16 (B, T, H, V)
#include <kbh/host.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include <kbh/numbers.hpp>

namespace {

constexpr int64_t kTokens = 64;

struct Problem {
  int64_t batch, tokens, heads, K, V;
  const uint16_t *q, *k, *v;
  const float* g;
  const uint16_t* beta;
  uint16_t* o;

  int64_t row(int64_t chain, int64_t t) const { return (chain / heads * tokens + t) * heads + chain % heads; }
};

/// c (rows x columns) += a (rows x depth) b (depth x columns), all dense; rows a multiple of 4, columns of 32. The tile
/// of sums stays in registers.
void multiply_add(int64_t rows, int64_t depth, int64_t columns, const float* a, const float* b, float* c) {
  constexpr int64_t kRows = 4, kColumns = 32;
  for (int64_t j = 0; j < columns; j += kColumns)
    for (int64_t i = 0; i < rows; i += kRows) {
      float sums[kRows][kColumns];
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t s = 0; s < kColumns; ++s) sums[r][s] = c[(i + r) * columns + j + s];
      for (int64_t p = 0; p < depth; ++p)
        for (int64_t r = 0; r < kRows; ++r)
          for (int64_t s = 0; s < kColumns; ++s) sums[r][s] += a[(i + r) * depth + p] * b[p * columns + j + s];
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t s = 0; s < kColumns; ++s) c[(i + r) * columns + j + s] = sums[r][s];
    }
}

/// One batch and head. Its memory is a K x V matrix that lives from chunk to chunk.
class Chain {
 public:
  explicit Chain(const Problem& problem)
      : p_(problem),
        memory_(p_.K * p_.V),
        left_(p_.K),
        keys_(p_.K * kTokens),
        key_rows_(kTokens * p_.K),
        query_rows_(kTokens * p_.K),
        key_products_(kTokens * kTokens),
        query_products_(kTokens * kTokens),
        values_(kTokens * p_.V),
        answers_(kTokens * p_.V) {}

  void run(int64_t chain) {
    std::fill(memory_.begin(), memory_.end(), 0.0f);
    for (int64_t t = 0; t < p_.tokens; t += kTokens) {
      multiply_keys(chain, t);
      load_values(chain, t);
      multiply_add(kTokens, p_.K, p_.V, key_rows_.data(), memory_.data(), values_.data());
      solve(chain, t);
      std::fill(answers_.begin(), answers_.end(), 0.0f);
      multiply_add(kTokens, p_.K, p_.V, query_rows_.data(), memory_.data(), answers_.data());
      multiply_add(kTokens, kTokens, p_.V, query_products_.data(), values_.data(), answers_.data());
      write(chain, t);
      for (int64_t d = 0; d < p_.K; ++d)
        for (int64_t c = 0; c < p_.V; ++c) memory_[d * p_.V + c] *= left_[d];
      multiply_add(p_.K, kTokens, p_.V, keys_.data(), values_.data(), memory_.data());
    }
  }

 private:
  /// Products of every token with the earlier keys, faded as the token finds them. Fading multiplies gates up in the
  /// order of the tokens, so nothing overflows however strong they are. Keys of later tokens are still zero.
  void multiply_keys(int64_t chain, int64_t first) {
    std::fill(keys_.begin(), keys_.end(), 0.0f);
    std::fill(key_products_.begin(), key_products_.end(), 0.0f);
    std::fill(query_products_.begin(), query_products_.end(), 0.0f);
    std::fill(left_.begin(), left_.end(), 1.0f);
    for (int64_t i = 0; i < kTokens; ++i) {
      const int64_t row = p_.row(chain, first + i) * p_.K;
      float* key_product = &key_products_[i * kTokens];
      float* query_product = &query_products_[i * kTokens];
      const int64_t reach = (i + 16) / 16 * 16;  // whole vectors; what lies behind token i is zero
      for (int64_t d = 0; d < p_.K; ++d) {
        const float gate = std::exp(p_.g[row + d]);
        const float key = kbh::from_bf16(p_.k[row + d]);
        const float query = kbh::from_bf16(p_.q[row + d]);
        float* faded = &keys_[d * kTokens];
        for (int64_t j = 0; j < reach; ++j) {
          faded[j] *= gate;
          key_product[j] += key * faded[j];
        }
        faded[i] = key;
        for (int64_t j = 0; j < reach; ++j) query_product[j] += query * faded[j];
        left_[d] *= gate;
        key_rows_[i * p_.K + d] = -key * left_[d];
        query_rows_[i * p_.K + d] = query * left_[d];
      }
    }
  }

  void load_values(int64_t chain, int64_t first) {
    for (int64_t i = 0; i < kTokens; ++i)
      for (int64_t c = 0; c < p_.V; ++c)
        values_[i * p_.V + c] = kbh::from_bf16(p_.v[p_.row(chain, first + i) * p_.V + c]);
  }

  /// What each token writes: beta times what the old memory and the tokens before it leave unanswered.
  void solve(int64_t chain, int64_t first) {
    for (int64_t i = 0; i < kTokens; ++i) {
      float* value = &values_[i * p_.V];
      for (int64_t j = 0; j < i; ++j) {
        const float product = key_products_[i * kTokens + j];
        for (int64_t c = 0; c < p_.V; ++c) value[c] -= product * values_[j * p_.V + c];
      }
      const float beta = kbh::from_bf16(p_.beta[p_.row(chain, first + i)]);
      for (int64_t c = 0; c < p_.V; ++c) value[c] *= beta;
    }
  }

  void write(int64_t chain, int64_t first) {
    const float scale = 1 / std::sqrt(static_cast<float>(p_.K));
    for (int64_t i = 0; i < kTokens; ++i)
      for (int64_t c = 0; c < p_.V; ++c)
        p_.o[p_.row(chain, first + i) * p_.V + c] = kbh::to_bf16(scale * answers_[i * p_.V + c]);
  }

  const Problem& p_;
  std::vector<float> memory_;          // K x V
  std::vector<float> left_;            // K: what the chunk's gates so far leave of the memory
  std::vector<float> keys_;            // K x tokens, faded
  std::vector<float> key_rows_;        // tokens x K: minus the keys as the memory before the chunk meets them
  std::vector<float> query_rows_;      // tokens x K
  std::vector<float> key_products_;    // tokens x tokens, below the diagonal
  std::vector<float> query_products_;  // tokens x tokens, with the diagonal
  std::vector<float> values_;          // tokens x V
  std::vector<float> answers_;         // tokens x V
};

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new int64_t(context->threads);
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<int64_t*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem problem{.batch = inputs[0].shape[0],
                        .tokens = inputs[0].shape[1],
                        .heads = inputs[0].shape[2],
                        .K = inputs[0].shape[3],
                        .V = inputs[2].shape[3],
                        .q = static_cast<const uint16_t*>(inputs[0].data),
                        .k = static_cast<const uint16_t*>(inputs[1].data),
                        .v = static_cast<const uint16_t*>(inputs[2].data),
                        .g = static_cast<const float*>(inputs[3].data),
                        .beta = static_cast<const uint16_t*>(inputs[4].data),
                        .o = static_cast<uint16_t*>(outputs[0].data)};
  const int64_t chains = problem.batch * problem.heads;
  const int64_t threads = std::min(chains, *static_cast<const int64_t*>(self));

  // Thread t takes chains [chains * t / threads, chains * (t + 1) / threads); the calling thread is thread 0.
  const auto chains_of = [&](int64_t t) {
    Chain chain(problem);
    for (int64_t c = chains * t / threads; c < chains * (t + 1) / threads; ++c) chain.run(c);
  };
  std::vector<std::jthread> helpers;
  for (int64_t t = 1; t < threads; ++t) helpers.emplace_back(chains_of, t);
  chains_of(0);
  return 0;  // jthreads join here
}
