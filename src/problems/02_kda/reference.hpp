// Kimi Delta Attention, forward, in the chunk form: what o is, as plain C++. For reading; the verdict never uses it.
//
// Per batch and head there is a memory S (K x V), at first zero. With a_t = exp(g_t), one factor per channel of the
// key, token t does
//     S <- diag(a_t) S;   S <- S + beta_t k_t (v_t - k_t S);   o_t = K^-1/2 q_t S
// A chunk of 64 tokens does the same in one go. Let S be the memory before the chunk and let
//     k_j|i = k_j * a_{j+1} * ... * a_i        key j, faded as token i finds it
//     A_i   = a_first * ... * a_i              how far the old memory has faded when token i comes
// Then the corrected values w_i = beta_i (v_i - what the memory already answers to k_i) solve a triangular system,
//     w_i = beta_i (v_i - (A_i * k_i) S - sum_{j<i} (k_i . k_j|i) w_j)
//     o_i = K^-1/2 ((A_i * q_i) S + sum_{j<=i} (q_i . k_j|i) w_j)
//     S  <- diag(A_last) S + sum_j k_j|last w_j
// No exponential of a positive sum is ever formed: factors are multiplied up in the order of the tokens.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::reference {

struct KdaSizes {
  std::int64_t batch;
  std::int64_t tokens;  // a multiple of 64
  std::int64_t heads;
  std::int64_t key_width;
  std::int64_t value_width;
};

/// q, k (B, T, H, K) bf16; v, o (B, T, H, V) bf16; g (B, T, H, K) fp32: logarithms of the gates; beta (B, T, H) bf16.
/// All in fp64 inside; o is rounded once (by way of fp32).
inline void kda(const KdaSizes& size, const std::uint16_t* q, const std::uint16_t* k, const std::uint16_t* v,
                const float* g, const std::uint16_t* beta, std::uint16_t* o) {
  constexpr std::size_t kTokens = 64;
  const auto key_width = static_cast<std::size_t>(size.key_width);
  const auto value_width = static_cast<std::size_t>(size.value_width);
  const auto heads = static_cast<std::size_t>(size.heads);
  const auto tokens = static_cast<std::size_t>(size.tokens);
  const double scale = 1 / std::sqrt(static_cast<double>(size.key_width));

  std::vector<double> memory(key_width * value_width);  // S
  std::vector<double> faded_keys(key_width * kTokens);  // [d][j]: k_j|i for the token i at hand
  std::vector<double> faded_memory(key_width);          // A_i
  std::vector<double> values(kTokens * value_width);    // w
  std::vector<double> answer(value_width);

  for (std::size_t chain = 0; chain < static_cast<std::size_t>(size.batch) * heads; ++chain) {
    memory.assign(memory.size(), 0);
    for (std::size_t chunk = 0; chunk < tokens; chunk += kTokens) {
      faded_memory.assign(key_width, 1);
      for (std::size_t i = 0; i < kTokens; ++i) {
        const std::size_t row = (chain / heads * tokens + chunk + i) * heads + chain % heads;
        const std::uint16_t* query = q + row * key_width;
        const std::uint16_t* key = k + row * key_width;
        const float* gate = g + row * key_width;

        // Everything that is remembered fades; the token's own key joins; products of keys and queries with keys.
        double key_products[kTokens] = {};
        double query_products[kTokens] = {};
        for (std::size_t d = 0; d < key_width; ++d) {
          double* faded = &faded_keys[d * kTokens];
          const double factor = std::exp(static_cast<double>(gate[d]));
          const auto key_d = static_cast<double>(from_bf16(key[d]));
          const auto query_d = static_cast<double>(from_bf16(query[d]));
          for (std::size_t j = 0; j < i; ++j) faded[j] *= factor;
          faded[i] = key_d;
          faded_memory[d] *= factor;
          for (std::size_t j = 0; j < i; ++j) key_products[j] += key_d * faded[j];
          for (std::size_t j = 0; j <= i; ++j) query_products[j] += query_d * faded[j];
        }

        double* value = &values[i * value_width];
        for (std::size_t c = 0; c < value_width; ++c) {
          value[c] = static_cast<double>(from_bf16(v[row * value_width + c]));
          answer[c] = 0;
        }
        for (std::size_t d = 0; d < key_width; ++d) {
          const double key_d = faded_memory[d] * static_cast<double>(from_bf16(key[d]));
          const double query_d = faded_memory[d] * static_cast<double>(from_bf16(query[d]));
          for (std::size_t c = 0; c < value_width; ++c) {
            value[c] -= key_d * memory[d * value_width + c];
            answer[c] += query_d * memory[d * value_width + c];
          }
        }
        for (std::size_t j = 0; j < i; ++j)
          for (std::size_t c = 0; c < value_width; ++c) value[c] -= key_products[j] * values[j * value_width + c];
        const auto strength = static_cast<double>(from_bf16(beta[row]));
        for (std::size_t c = 0; c < value_width; ++c) value[c] *= strength;
        for (std::size_t j = 0; j <= i; ++j)
          for (std::size_t c = 0; c < value_width; ++c) answer[c] += query_products[j] * values[j * value_width + c];
        for (std::size_t c = 0; c < value_width; ++c)
          o[row * value_width + c] = to_bf16(static_cast<float>(scale * answer[c]));
      }

      for (std::size_t d = 0; d < key_width; ++d)
        for (std::size_t c = 0; c < value_width; ++c) {
          double sum = faded_memory[d] * memory[d * value_width + c];
          for (std::size_t j = 0; j < kTokens; ++j) sum += faded_keys[d * kTokens + j] * values[j * value_width + c];
          memory[d * value_width + c] = sum;
        }
    }
  }
}

}  // namespace kbh::reference
