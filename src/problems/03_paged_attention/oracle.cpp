#include <algorithm>
#include <cmath>

#include <kbh/numbers.hpp>

#include "base/every_width.hpp"
#include "base/parallel.hpp"
#include "problems/03_paged_attention/paged_attention.hpp"

namespace kbh::paged_attention {
namespace {

constexpr std::int64_t kLanes = 16;  // divides every head_dim of the domain
constexpr std::int64_t kMaxHeadDim = 128;

struct Group {
  std::int64_t heads;
  std::int64_t head_dim;
};

/// scores[h] = the dot product of row h of q (heads, head_dim) and a key. Products are exact, sums are fp64.
KBH_EVERY_WIDTH void dot_key(Group group, const double* q, const std::uint16_t* key, double* scores) {
  double wide[kMaxHeadDim] = {};
  for (std::int64_t d = 0; d < group.head_dim; ++d) wide[d] = static_cast<double>(from_bf16(key[d]));
  for (std::int64_t h = 0; h < group.heads; ++h) {
    double lanes[kLanes] = {};
    for (std::int64_t d = 0; d < group.head_dim; d += kLanes)
      for (std::int64_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] += q[h * group.head_dim + d + lane] * wide[d + lane];
    for (std::int64_t width = kLanes / 2; width > 0; width /= 2)
      for (std::int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    scores[h] = lanes[0];
  }
}

/// out[h] += weights[h] * value, for each head of the group.
KBH_EVERY_WIDTH void add_value(Group group, const double* weights, const std::uint16_t* value, double* out) {
  double wide[kMaxHeadDim];
  for (std::int64_t d = 0; d < group.head_dim; ++d) wide[d] = static_cast<double>(from_bf16(value[d]));
  for (std::int64_t h = 0; h < group.heads; ++h)
    for (std::int64_t d = 0; d < group.head_dim; ++d) out[h * group.head_dim + d] += weights[h] * wide[d];
}

/// scores (tokens, heads) become e^(score - largest of the head); totals are their sums per head.
void exponentiate(std::span<double> scores, std::span<double> totals) {
  const std::size_t heads = totals.size();
  std::vector<double> largest(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(heads));
  for (std::size_t i = 0; i < scores.size(); ++i) largest[i % heads] = std::max(largest[i % heads], scores[i]);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = std::exp(scores[i] - largest[i % heads]);
    totals[i % heads] += scores[i];
  }
}

}  // namespace

void attend_group(const Sizes& size, const Inputs& inputs, std::int64_t sequence, std::int64_t kv_head,
                  std::span<double> out) {
  const Group group{size.group(), size.head_dim};
  const std::size_t first_row = index((sequence * size.num_heads + kv_head * group.heads) * size.head_dim);
  const double scale = 1 / std::sqrt(static_cast<double>(size.head_dim));
  std::vector<double> q(out.size());
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<double>(from_bf16(inputs.query[first_row + i])) * scale;

  const std::int64_t length = inputs.seq_lens[index(sequence)];
  const auto row = [&](std::int64_t token) {
    const std::int64_t page = inputs.block_table[index(sequence * size.pages_per_seq() + token / size.page_size)];
    return &inputs.cache[size.row(page, token % size.page_size, kv_head)];
  };
  std::vector<double> scores(index(length * group.heads));
  std::vector<double> totals(index(group.heads));
  for (std::int64_t t = 0; t < length; ++t) dot_key(group, q.data(), row(t), &scores[index(t * group.heads)]);
  exponentiate(scores, totals);
  std::fill(out.begin(), out.end(), 0.0);
  for (std::int64_t t = 0; t < length; ++t)
    add_value(group, &scores[index(t * group.heads)], row(t) + size.head_dim, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] /= totals[i / index(size.head_dim)];
}

Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors) {
  const Sizes size(shape);
  const Inputs inputs = inputs_of(tensors);
  const std::size_t width = index(size.group() * size.head_dim);
  Expected expected;
  std::vector<double>& out = expected.outputs.emplace_back(index(size.batch * size.num_heads * size.head_dim));
  // A group of a short sequence is not worth a thread.
  const std::size_t grain = index(1 + (1 << 16) / (size.seq_len * size.head_dim));
  parallel_for(index(size.batch * size.num_kv_heads), grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      attend_group(size, inputs, static_cast<std::int64_t>(i) / size.num_kv_heads,
                   static_cast<std::int64_t>(i) % size.num_kv_heads, std::span(out).subspan(i * width, width));
  });
  return expected;
}

}  // namespace kbh::paged_attention
