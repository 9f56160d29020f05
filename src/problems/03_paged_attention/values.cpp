#include <algorithm>

#include "problems/03_paged_attention/draws.hpp"

namespace kbh::paged_attention {
namespace {

constexpr float kNominal = 0.1f;
constexpr std::size_t kRun = std::size_t{1} << 13;  // elements; their normal numbers stay in an L1 or L2 cache
constexpr std::size_t kPrefixBytes = std::size_t{64} << 10;

float root_of(std::int64_t n) { return philox::root(static_cast<float>(n)); }

void fill_query(const Data& data, float scale) {
  fill_normal_bf16(data.in.query, data.stream("query"), {.scale = scale});
}

void fill_query_and_cache(const Data& data, float query_scale, float cache_scale) {
  fill_query(data, query_scale);
  fill_normal_bf16(data.in.cache, data.stream("kv_cache"), {.scale = cache_scale});
}

/// What CacheBf16 reads: the tables, owned here.
struct CacheRules {
  std::vector<PageRule> pages;
  std::vector<float> directions;
  std::vector<float> value_scales;
  float key_scale = 1;
  float value_scale = 1;
  Unused unused = Unused::drawn;

  explicit CacheRules(const Data& data)
      : pages(page_rules(data)),
        directions(index(data.size.num_kv_heads * data.size.head_dim)),
        value_scales(index(data.size.num_kv_heads), 1.0f) {
    Random random = data.random("directions");
    for (float& direction : directions) direction = random.below(2) == 0 ? 1.0f : -1.0f;
  }

  /// Calls rule(page of the sequence, is it the last?) on every page in use.
  template <typename Change>
  void each_page(const Data& data, const Change& change) {
    for (std::int64_t b = 0; b < data.size.batch; ++b) {
      const std::int64_t used = data.size.pages_of(data.length(b));
      for (std::int64_t page = 0; page < used; ++page)
        change(b, pages[index(data.page(b, page))], page == 0, page == used - 1);
    }
  }

  void fill(const Data& data) const {
    const CacheBf16 draw{.kv_heads = static_cast<std::uint32_t>(data.size.num_kv_heads),
                         .page_size = static_cast<std::uint32_t>(data.size.page_size),
                         .head_dim = static_cast<std::uint32_t>(data.size.head_dim),
                         .pages = pages.data(),
                         .directions = directions.data(),
                         .value_scales = value_scales.data(),
                         .key_scale = key_scale,
                         .value_scale = value_scale,
                         .unused = unused};
    fill_cache_bf16(data.in.cache, data.stream("kv_cache"), draw);
  }
};

/// Scales between 2^-6 and 2^6, one of them below 2^-4 and one above 2^4 where there are two.
std::vector<float> spread_scales(std::int64_t count, Random& random) {
  std::vector<float> scales(index(count));
  for (float& scale : scales) scale = random.log_uniform(-6, 6);
  const std::int64_t quiet = random.below(count);
  scales[index(quiet)] = random.log_uniform(-6, -4);
  if (count > 1) scales[index((quiet + random.between(1, count - 1)) % count)] = random.log_uniform(4, 6);
  return scales;
}

/// row = round(factor * row + along * direction)
void adjust(std::span<std::uint16_t> row, float factor, float along, const float* direction) {
  for (std::size_t d = 0; d < row.size(); ++d)
    row[d] = to_bf16(philox::add(philox::mul(factor, from_bf16(row[d])), philox::mul(along, direction[d])));
}

/// q = r + along * the direction of its head of the cache.
void fill_query_along(const Data& data, const CacheRules& cache, float along) {
  fill_query(data, 1);
  for (std::int64_t b = 0; b < data.size.batch; ++b)
    for (std::int64_t h = 0; h < data.size.num_heads; ++h)
      adjust(data.query_row(b, h), 1, along, &cache.directions[index(h / data.size.group() * data.size.head_dim)]);
}

/// Weights are nearly uniform, the last page and above all the last token carry the answer. A last page adds
/// 2 sqrt(len) to 1 in len / page_size of the values, so its part of the answer is many times the rms 1 / sqrt(len) of
/// the rest, at any length; unused slots pull the other way.
void ramp_with(const Data& data, Unused unused) {
  edge_lengths(data);
  random_table(data);
  fill_query(data, kNominal);
  CacheRules cache(data);
  cache.key_scale = kNominal;
  cache.unused = unused;
  cache.each_page(data, [&](std::int64_t b, PageRule& rule, bool, bool last) {
    if (!last) return;
    rule.value_shift = 2 * root_of(data.length(b));
    rule.last_shift = 4 * root_of(data.length(b));
    rule.unused_value = -8 * root_of(data.length(b));
  });
  cache.fill(data);
}

/// Calls shape(first, normal numbers) on runs of whole rows, in parallel.
template <typename Shape>
void each_run(std::size_t elements, std::size_t row, std::uint64_t stream, const Shape& shape) {
  const std::size_t rows = elements / row;
  const std::size_t rows_of_run = std::max<std::size_t>(1, kRun / row);
  parallel_for((rows + rows_of_run - 1) / rows_of_run, 4, [&](std::size_t begin, std::size_t end) {
    std::vector<float> normals(rows_of_run * row);
    for (std::size_t run = begin; run < end; ++run) {
      const std::size_t first = run * rows_of_run;
      const std::size_t count = std::min(rows_of_run, rows - first);
      const std::span<float> drawn(normals.data(), count * row);
      fill_normal(drawn, stream, first * row);
      shape(first * row, drawn);
    }
  });
}

}  // namespace

void fill_normal_bf16(std::span<std::uint16_t> out, std::uint64_t stream, const NormalBf16& draw) {
  each_run(out.size(), 1, stream, [&](std::size_t first, std::span<const float> normals) {
    for (std::size_t i = 0; i < normals.size(); ++i) out[first + i] = draw.shaped(first + i, normals[i]);
  });
}

void fill_cache_bf16(std::span<std::uint16_t> out, std::uint64_t stream, const CacheBf16& draw) {
  const std::uint32_t half = draw.head_dim;
  each_run(out.size(), std::size_t{2} * half, stream, [&](std::size_t first, std::span<const float> normals) {
    for (std::size_t i = 0; i < normals.size(); i += std::size_t{2} * half) {
      const CacheBf16::Row row = draw.row(static_cast<std::uint32_t>((first + i) / (std::size_t{2} * half)));
      const float* z = &normals[i];
      std::uint16_t* to = &out[first + i];
      if (row.poisoned) {
        for (std::uint32_t c = 0; c < 2 * half; ++c) to[c] = CacheBf16::poison(z[c]);
        continue;
      }
      for (std::uint32_t d = 0; d < half; ++d) to[d] = draw.key(row, d, z[d]);
      for (std::uint32_t d = 0; d < half; ++d) to[half + d] = CacheBf16::value(row, z[half + d]);
    }
  });
}

void nominal(const Data& data) { scaled(data, 1); }

void scaled(const Data& data, float scale) {
  full_lengths(data);
  random_table(data);
  fill_query_and_cache(data, kNominal * scale, kNominal * scale);
}

/// Scores of a standard deviation up to 2 from keys and queries of any size; values far above or below fp16's range.
void random_scale(const Data& data) {
  full_lengths(data);
  random_table(data);
  Random random = data.random("scales");
  CacheRules cache(data);
  const float spread = random.log_uniform(-4, 1);
  cache.key_scale = random.log_uniform(-10, 10);
  cache.value_scale = random.below(2) == 0 ? random.log_uniform(22, 40) : random.log_uniform(-40, -22);
  fill_query(data, spread / cache.key_scale);
  cache.fill(data);
}

void prefix(const Data& data, float front_scale, float rest_scale) {
  full_lengths(data);
  random_table(data);
  fill_query(data, kNominal);
  fill_normal_bf16(data.in.cache, data.stream("kv_cache"),
                   {.scale = kNominal * rest_scale,
                    .front = kPrefixBytes / sizeof(std::uint16_t),
                    .front_scale = kNominal * front_scale});
}

void peaked(const Data& data) {
  full_lengths(data);
  random_table(data);
  fill_query_and_cache(data, 2, 1);
}

void ragged(const Data& data) {
  ragged_lengths(data);
  random_table(data);
  fill_query_and_cache(data, 1, 1);
}

void one_long(const Data& data) {
  one_long_length(data);
  random_table(data);
  fill_query_and_cache(data, 1, 1);
}

void shared(const Data& data) {
  Random random = data.random("seq_lens");
  for (std::int32_t& length : data.in.seq_lens)
    length = static_cast<std::int32_t>(random.between((data.size.seq_len + 1) / 2, data.size.seq_len));
  shared_table(data);
  fill_query_and_cache(data, 1, 1);
}

void both_ends(const Data& data) {
  full_lengths(data);
  table_with_both_ends(data);
  fill_query_and_cache(data, kNominal, kNominal);
}

/// Each query head finds a copy of itself among the keys: score sqrt(head_dim) = 11.3 (head_dim 64: 12, from a copy 1.5
/// times as large) where the others are N(0, 1), so that it takes nearly all of the weight.
void hot(const Data& data) {
  ragged_lengths(data);
  random_table(data);
  fill_query_and_cache(data, 1, 1);
  Random random = data.random("hot");
  const float copied = data.size.head_dim == 64 ? 1.5f : 1.0f;
  for (std::int64_t b = 0; b < data.size.batch; ++b) {
    const std::int64_t length = data.length(b);
    const std::int64_t places[] = {length - 1, (length - 1) / data.size.page_size * data.size.page_size};
    for (std::int64_t h = data.size.num_heads; h-- > 0;) {  // head 0 of a group writes last, and wins
      const std::span<std::uint16_t> q = data.query_row(b, h);
      float squares = 0;
      for (const std::uint16_t element : q)
        squares = philox::add(squares, philox::mul(from_bf16(element), from_bf16(element)));
      const float to_norm = philox::root(philox::div(static_cast<float>(data.size.head_dim), squares));
      const std::int64_t in_group = h % data.size.group();
      const std::int64_t place = in_group < 2 ? places[in_group] : random.below(length);
      const std::span<std::uint16_t> key = data.cache_row(b, place, h / data.size.group());
      for (std::size_t d = 0; d < q.size(); ++d) {
        q[d] = to_bf16(philox::mul(from_bf16(q[d]), to_norm));
        key[d] = to_bf16(philox::mul(from_bf16(q[d]), copied));
      }
    }
  }
}

void ramp(const Data& data) { ramp_with(data, Unused::constant); }

void poisoned(const Data& data) { ramp_with(data, Unused::poison); }

void single_token(const Data& data) {
  lengths_of_one(data);
  random_table(data);
  fill_query(data, 1);
  CacheRules cache(data);
  cache.unused = Unused::poison;
  cache.fill(data);
}

/// q = 0, K = 0, V = +1 in valid slots and -1 elsewhere.
void signs(const Data& data, const PropertyLengths& parameters) {
  property_lengths(data, parameters);
  random_table(data);
  fill_query(data, 0);
  CacheRules cache(data);
  cache.key_scale = 0;
  cache.value_scale = 0;
  cache.unused = Unused::constant;
  for (PageRule& rule : cache.pages) {
    rule.value_shift = 1;
    rule.unused_value = -1;
  }
  cache.fill(data);
}

void random_signs(const Data& data) {
  Random random = data.random("parameters");
  PropertyLengths parameters{};
  parameters.divisor = random.between(4, 32);
  parameters.tail = random.between(1, 15);
  parameters.stride = random.between(1, 7);
  signs(data, parameters);
}

/// Queries and keys share a direction: along^2 * sqrt(head_dim) = 120, and the scores spread by 0.4 * along about that.
void offset_scores(const Data& data, float sign) {
  ragged_lengths(data);
  random_table(data);
  CacheRules cache(data);
  const float along = philox::root(philox::div(120, root_of(data.size.head_dim)));
  fill_query_along(data, cache, along);
  cache.key_scale = 0.4f;
  for (PageRule& rule : cache.pages) rule.key_shift = philox::mul(sign, along);
  cache.fill(data);
}

/// One key scores 120 (+- 8 between heads), all others N(0, 0.6^2): the answer is that token's value.
void spike(const Data& data, bool at_end) {
  ragged_lengths(data);
  random_table(data);
  CacheRules cache(data);
  fill_query_along(data, cache, 2);
  cache.key_scale = 0.25f;
  const float along = philox::div(60, root_of(data.size.head_dim));
  cache.each_page(data, [&](std::int64_t, PageRule& rule, bool first, bool last) {
    if (at_end ? !last : !first) return;
    rule.spike = at_end ? rule.valid - 1 : 0;
    rule.spike_shift = along;
  });
  cache.fill(data);
}

void mixed_sequences(const Data& data) {
  full_lengths(data);
  random_table(data);
  fill_query(data, 1);
  CacheRules cache(data);
  Random random = data.random("scales");
  const std::vector<float> scales = spread_scales(data.size.batch, random);
  cache.each_page(data, [&](std::int64_t b, PageRule& rule, bool, bool) { rule.value_scale = scales[index(b)]; });
  cache.fill(data);
}

void mixed_heads(const Data& data) {
  full_lengths(data);
  random_table(data);
  fill_query(data, 1);
  CacheRules cache(data);
  Random random = data.random("scales");
  cache.value_scales = spread_scales(data.size.num_kv_heads, random);
  for (std::int64_t h = 0; h < data.size.num_heads; ++h) {
    const float spread = random.log_uniform(-3, 1);
    for (std::int64_t b = 0; b < data.size.batch; ++b) adjust(data.query_row(b, h), spread, 0, cache.directions.data());
  }
  cache.fill(data);
}

}  // namespace kbh::paged_attention
