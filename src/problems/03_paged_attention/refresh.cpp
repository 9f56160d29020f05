#include <algorithm>
#include <array>
#include <numeric>

#include "problems/03_paged_attention/draws.hpp"

namespace kbh::paged_attention {
namespace {

constexpr std::int64_t kMostChanges = 7;
constexpr float kNominal = 0.1f;

float sign(Random& random) { return random.below(2) == 0 ? 1.0f : -1.0f; }

void add(std::uint16_t& element, float change) { element = to_bf16(philox::add(from_bf16(element), change)); }

/// A random token of a random sequence.
struct Place {
  std::int64_t sequence;
  std::int64_t token;
  std::int64_t kv_head;

  Place(const Data& data, Random& random)
      : sequence(random.below(data.size.batch)),
        token(random.below(data.length(sequence))),
        kv_head(random.below(data.size.num_kv_heads)) {}
};

/// Weights are uniform, so a value's change reaches the answer divided by the length; 0.8 sqrt(len) is 8 times the rms
/// of the row there.
void change_value(const Data& data, Random& random) {
  const Place place(data, random);
  const std::span<std::uint16_t> row = data.cache_row(place.sequence, place.token, place.kv_head);
  const float size = 0.8f * philox::root(static_cast<float>(data.length(place.sequence))) * random.uniform(1, 2);
  add(row[index(data.size.head_dim + random.below(data.size.head_dim))], sign(random) * size);
}

/// One element of a key, where a query of its group is largest, raises that query's score to ln(len) + 3: the token
/// outweighs all others together.
void change_key(const Data& data, Random& random) {
  const Place place(data, random);
  const std::int64_t head = place.kv_head * data.size.group() + random.below(data.size.group());
  const std::span<const std::uint16_t> q = data.query_row(place.sequence, head);
  const auto magnitude = [](std::uint16_t element) { return element & 0x7fffu; };
  const auto largest = std::max_element(q.begin(), q.end(),
                                        [&](std::uint16_t a, std::uint16_t b) { return magnitude(a) < magnitude(b); });
  const float score = philox::log(static_cast<float>(data.length(place.sequence))) + 3;
  const float change = score * philox::root(static_cast<float>(data.size.head_dim)) / from_bf16(*largest);
  add(data.cache_row(place.sequence, place.token, place.kv_head)[index(largest - q.begin())], change);
}

void change_cache(const Data& data, Random& random) {
  const std::int64_t count = random.between(1, kMostChanges);
  for (std::int64_t i = 0; i < count; ++i)
    if (random.below(2) == 0)
      change_key(data, random);
    else
      change_value(data, random);
}

/// One element of a query spreads its scores by 1.5 where they were nearly equal.
void change_queries(const Data& data, Random& random) {
  const std::int64_t count = random.between(1, kMostChanges);
  const float size = 1.5f / kNominal * philox::root(static_cast<float>(data.size.head_dim));
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t& element = data.in.query[index(random.below(static_cast<std::int64_t>(data.in.query.size())))];
    add(element, sign(random) * size * random.uniform(1, 1.3f));
  }
}

/// A full page (where there is one) is exchanged for a page that no sequence uses.
void change_table(const Data& data, Random& random) {
  const std::int64_t count = random.between(1, kMostChanges);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::vector<PageRule> rules = page_rules(data);
    const std::int64_t sequence = random.below(data.size.batch);
    const std::int64_t number = random.below(std::max<std::int64_t>(1, data.length(sequence) / data.size.page_size));
    std::int64_t page = random.below(data.size.total_pages());
    while (rules[index(page)].valid > 0) page = (page + 1) % data.size.total_pages();
    data.page(sequence, number) = static_cast<std::int32_t>(page);
  }
}

/// Long sequences become short ones, and the reverse.
void change_lengths(const Data& data, Random& random) {
  const std::int64_t count = random.between(1, std::min(kMostChanges, data.size.batch));
  const std::int64_t first = random.below(data.size.batch);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int32_t& length = data.in.seq_lens[index((first + i) % data.size.batch)];
    const std::int64_t half = length / 2;
    const bool shorter = 2 * std::int64_t{length} > data.size.seq_len;
    length = static_cast<std::int32_t>(
        shorter ? std::max<std::int64_t>(1, random.between((half + 1) / 2, half))
                : std::min<std::int64_t>(data.size.seq_len, random.between(2 * length, 3 * length)));
  }
}

}  // namespace

void in_place(const Data& data) {
  ragged_lengths(data);
  random_table(data);
  fill_normal_bf16(data.in.query, data.stream("query"), {.scale = kNominal});
  fill_normal_bf16(data.in.cache, data.stream("kv_cache"), {.scale = kNominal});
}

void in_place_change(const Data& data, int step) {
  constexpr std::array kChanges = {change_cache, change_queries, change_table, change_lengths};
  static_assert(kChanges.size() == kInPlaceCalls - 1);
  std::array<std::size_t, kChanges.size()> order{};
  std::iota(order.begin(), order.end(), 0);
  Random shuffle = data.random("order of changes");
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[index(shuffle.below(static_cast<std::int64_t>(i)))]);
  Random random = data.random("change " + std::to_string(step));
  kChanges[order[index(step - 1)]](data, random);
}

/// One pair of sequence and head of the cache in 16, at least one: queries anew, and every 64th token, at least 4.
/// Weights are uniform, so the answer moves by sqrt(2 / 64) = 18 % of its rms, 20 times the bound of a row.
void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected) {
  const Data data(key, tensors);
  const Sizes& size = data.size;
  Random random = data.random("refresh");
  const std::uint64_t stream = data.stream("refresh/values");
  std::uint64_t drawn = 0;
  const NormalBf16 draw{kNominal};
  const auto redraw = [&](std::span<std::uint16_t> row) {
    for (std::uint16_t& element : row) {
      element = draw(philox::words(stream, drawn), drawn);
      ++drawn;
    }
  };
  const std::int64_t pairs = size.batch * size.num_kv_heads;
  const std::int64_t count = std::max<std::int64_t>(1, pairs / 16);
  const Inputs inputs{data.in.query, data.in.cache, data.in.block_table, data.in.seq_lens};
  const std::size_t width = index(size.group() * size.head_dim);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t pair = random.below(pairs);
    const std::int64_t sequence = pair / size.num_kv_heads;
    const std::int64_t kv_head = pair % size.num_kv_heads;
    for (std::int64_t h = 0; h < size.group(); ++h) redraw(data.query_row(sequence, kv_head * size.group() + h));
    const std::int64_t length = data.length(sequence);
    for (std::int64_t t = 0; t < std::max<std::int64_t>(4, length / 64); ++t)
      redraw(data.cache_row(sequence, random.below(length), kv_head));
    attend_group(size, inputs, sequence, kv_head, std::span(expected.outputs[0]).subspan(index(pair) * width, width));
  }
}

}  // namespace kbh::paged_attention
