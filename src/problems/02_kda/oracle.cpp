// The oracle: the recurrence token by token, in fp64.
//
//     S <- diag(e^g) S;   delta = beta (v - k S);   S <- S + k delta;   o = K^-1/2 q S
//
// equals the chunk form of the public reference to 1e-14. One pass over S does all of it: the former token's rank-1
// update is applied when S is read for the next token, and q (S + k delta) = q S + (q . k) delta. Columns of S do not
// meet, so blocks of them run one after the other, each small enough for the first-level cache.
#include <algorithm>
#include <array>
#include <cmath>

#include <kbh/numbers.hpp>

#include "base/every_width.hpp"
#include "base/parallel.hpp"
#include "problems/02_kda/kda.hpp"

namespace kbh::kda {
namespace {

// 128 x 32 doubles are 32 KiB; sums over 32 columns stay in registers.
constexpr std::size_t kColumns = 32;
using Columns = std::array<double, kColumns>;

/// One chunk of a chain, as doubles; its memory is used again for the next.
struct Tokens {
  std::size_t key_width;
  double scale;
  std::vector<double> q, k, decay;  // kChunk x K
  std::vector<double> qk;           // q . k of each token
  std::vector<double> beta;
  std::vector<double> pending_key;  // the key of the token before this chunk

  explicit Tokens(const Sizes& size)
      : key_width(index(size.key_width)),
        scale(1 / std::sqrt(static_cast<double>(size.key_width))),
        q(index(kChunk) * key_width),
        k(q.size()),
        decay(q.size()),
        qk(index(kChunk)),
        beta(index(kChunk)),
        pending_key(key_width) {}

  void load(const Sizes& size, std::span<const ConstTensorView> tensors, std::int64_t chain, std::int64_t first) {
    std::copy(k.end() - static_cast<std::ptrdiff_t>(key_width), k.end(), pending_key.begin());
    for (std::size_t t = 0; t < index(kChunk); ++t) {
      const std::size_t row = index(size.row(chain, first + static_cast<std::int64_t>(t)));
      const std::uint16_t* query = tensors[kQ].as<std::uint16_t>().data() + row * key_width;
      const std::uint16_t* key = tensors[kK].as<std::uint16_t>().data() + row * key_width;
      const float* gate = tensors[kG].as<float>().data() + row * key_width;
      beta[t] = static_cast<double>(from_bf16(tensors[kBeta].as<std::uint16_t>()[row]));
      qk[t] = 0;
      for (std::size_t d = 0; d < key_width; ++d) {
        const std::size_t i = t * key_width + d;
        q[i] = static_cast<double>(from_bf16(query[d]));
        k[i] = static_cast<double>(from_bf16(key[d]));
        decay[i] = std::exp(static_cast<double>(gate[d]));
        qk[t] += q[i] * k[i];
      }
    }
  }
};

/// A block of columns of the recurrence's state.
struct Block {
  std::vector<double> s;  // K x kColumns, without the last token's update
  Columns delta{};        // of the last token

  explicit Block(std::size_t key_width) : s(key_width * kColumns) {}
};

/// Token t on one block; `value` becomes the token's o.
KBH_EVERY_WIDTH void step(const Tokens& tokens, std::size_t t, Block& block, Columns& value) {
  const std::size_t width = tokens.key_width;
  const double* former = t == 0 ? tokens.pending_key.data() : tokens.k.data() + (t - 1) * width;
  const double* key = tokens.k.data() + t * width;
  const double* query = tokens.q.data() + t * width;
  const double* decay = tokens.decay.data() + t * width;
  double* s = block.s.data();
  double known[kColumns] = {};
  double answer[kColumns] = {};
  double delta[kColumns];
  for (std::size_t j = 0; j < kColumns; ++j) delta[j] = block.delta[j];
  for (std::size_t d = 0; d < width; ++d, s += kColumns)
    for (std::size_t j = 0; j < kColumns; ++j) {
      const double now = (s[j] + former[d] * delta[j]) * decay[d];
      s[j] = now;
      known[j] += key[d] * now;
      answer[j] += query[d] * now;
    }
  for (std::size_t j = 0; j < kColumns; ++j) {
    const double change = tokens.beta[t] * (value[j] - known[j]);
    block.delta[j] = change;
    value[j] = tokens.scale * (answer[j] + tokens.qk[t] * change);
  }
}

/// Columns [begin, end) x kColumns of one chain.
void solve_blocks(const Sizes& size, std::span<const ConstTensorView> tensors, std::int64_t chain, std::size_t begin,
                  std::size_t end, std::span<double> o) {
  const std::span<const std::uint16_t> v = tensors[kV].as<std::uint16_t>();
  Tokens tokens(size);
  std::vector<Block> blocks(end - begin, Block(tokens.key_width));
  for (std::int64_t first = 0; first < size.tokens; first += kChunk) {
    tokens.load(size, tensors, chain, first);
    for (std::size_t b = begin; b < end; ++b)
      for (std::int64_t t = 0; t < kChunk; ++t) {
        const std::size_t at = index(size.row(chain, first + t) * size.value_width) + b * kColumns;
        Columns value;
        for (std::size_t j = 0; j < kColumns; ++j) value[j] = static_cast<double>(from_bf16(v[at + j]));
        step(tokens, index(t), blocks[b - begin], value);
        std::copy(value.begin(), value.end(), o.begin() + static_cast<std::ptrdiff_t>(at));
      }
  }
}

/// Some chains; each is cut into slices of columns where there are fewer chains than processors.
void solve(const Sizes& size, std::span<const ConstTensorView> tensors, std::int64_t first, std::int64_t count,
           std::span<double> o) {
  const std::size_t blocks = index(size.value_width) / kColumns;
  const std::size_t chains = index(count);
  const std::size_t slices = std::clamp<std::size_t>((available_processors() + chains - 1) / chains, 1, blocks);
  parallel_for(chains * slices, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t slice = i % slices;
      solve_blocks(size, tensors, first + static_cast<std::int64_t>(i / slices), blocks * slice / slices,
                   blocks * (slice + 1) / slices, o);
    }
  });
}

}  // namespace

Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors) {
  const Sizes size(shape);
  Expected expected;
  expected.outputs.emplace_back(index(size.rows() * size.value_width));
  solve(size, tensors, 0, size.chains(), expected.outputs[0]);
  return expected;
}

void solve_chain(const Sizes& size, std::span<const ConstTensorView> tensors, std::int64_t chain, std::span<double> o) {
  solve(size, tensors, chain, 1, o);
}

}  // namespace kbh::kda
