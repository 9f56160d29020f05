#include <algorithm>
#include <numeric>

#include "problems/03_paged_attention/draws.hpp"

namespace kbh::paged_attention {
namespace {

template <typename T>
void shuffle(std::span<T> values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[index(random.below(static_cast<std::int64_t>(i)))]);
}

void set_length(const Data& data, std::int64_t sequence, std::int64_t length) {
  data.in.seq_lens[index(sequence)] = static_cast<std::int32_t>(std::clamp<std::int64_t>(length, 1, data.size.seq_len));
}

bool ends_a_page(const Sizes& size, std::int64_t length) { return length % size.page_size == 0; }

/// A random length whose last page is not full.
std::int64_t unfinished_length(const Sizes& size, Random& random) {
  const std::int64_t length = random.between(1, size.seq_len);
  return ends_a_page(size, length) ? length - 1 : length;
}

std::vector<std::int32_t> permutation(const Data& data) {
  std::vector<std::int32_t> pages(index(data.size.total_pages()));
  std::iota(pages.begin(), pages.end(), 0);
  Random random = data.random("block_table");
  shuffle(std::span(pages), random);
  return pages;
}

}  // namespace

void full_lengths(const Data& data) {
  for (std::int64_t b = 0; b < data.size.batch; ++b) set_length(data, b, data.size.seq_len);
}

void ragged_lengths(const Data& data) {
  Random random = data.random("seq_lens");
  for (std::int64_t b = 0; b < data.size.batch; ++b) set_length(data, b, random.between(1, data.size.seq_len));
  const std::int64_t longest = random.below(data.size.batch);
  set_length(data, longest, data.size.seq_len);
  if (data.size.batch > 1)
    set_length(data, (longest + random.between(1, data.size.batch - 1)) % data.size.batch,
               unfinished_length(data.size, random));
}

void edge_lengths(const Data& data) {
  const std::int64_t longest = data.size.seq_len;
  const std::int64_t page = data.size.page_size;
  std::vector<std::int64_t> edges = {longest,  longest - 1, longest - page + 1, longest - page, longest - page - 1, 1,
                                     page - 1, page,        page + 1,           2 * page + 1};
  std::erase_if(edges, [&](std::int64_t length) { return length < 1 || length > longest; });
  Random random = data.random("seq_lens");
  shuffle(std::span(edges), random);
  // 1 is always among them, so one is found; the longest of the unfinished ones would make every draw alike.
  const auto first = std::find_if(edges.begin(), edges.end(), [&](auto n) { return !ends_a_page(data.size, n); });
  std::iter_swap(edges.begin(), first);
  for (std::int64_t b = 0; b < data.size.batch; ++b) {
    const bool known = b < static_cast<std::int64_t>(edges.size());
    set_length(data, b, known ? edges[index(b)] : random.between(1, longest));
  }
}

void one_long_length(const Data& data) {
  Random random = data.random("seq_lens");
  for (std::int64_t b = 0; b < data.size.batch; ++b) set_length(data, b, random.between(1, 2 * data.size.page_size));
  set_length(data, random.below(data.size.batch), data.size.seq_len);
}

void lengths_of_one(const Data& data) {
  for (std::int64_t b = 0; b < data.size.batch; ++b) set_length(data, b, 1);
}

void property_lengths(const Data& data, const PropertyLengths& parameters) {
  const std::int64_t page = data.size.page_size;
  for (std::int64_t b = 0; b < data.size.batch; ++b) {
    const std::int64_t tail = (parameters.tail - 1 + b * parameters.stride) % (page - 1) + 1;
    const std::int64_t share =
        std::max<std::int64_t>(1, data.size.seq_len / (parameters.divisor + b * parameters.stride));
    set_length(data, b, share - share % page + tail);
  }
}

void random_table(const Data& data) {
  const std::vector<std::int32_t> pages = permutation(data);
  std::copy_n(pages.begin(), data.in.block_table.size(), data.in.block_table.begin());
}

void table_with_both_ends(const Data& data) {
  std::vector<std::int32_t> pages = permutation(data);
  const auto used = static_cast<std::int64_t>(data.in.block_table.size());
  Random random = data.random("ends");
  // Two different places where there are two.
  const std::int64_t front = random.below(used);
  const std::int64_t back = used > 1 ? (front + random.between(1, used - 1)) % used : front;
  std::iter_swap(pages.begin() + back, std::find(pages.begin(), pages.end(), data.size.total_pages() - 1));
  std::iter_swap(pages.begin() + front, std::find(pages.begin(), pages.end(), 0));
  std::copy_n(pages.begin(), used, data.in.block_table.begin());
}

void shared_table(const Data& data) {
  random_table(data);
  Random random = data.random("shared");
  for (std::int64_t b = 1; b < data.size.batch; b += 2) {
    const std::int64_t full = std::min(data.length(b - 1), data.length(b)) / data.size.page_size;
    if (full == 0) continue;
    const std::int64_t common = random.between((full + 1) / 2, full);
    for (std::int64_t page = 0; page < common; ++page) data.page(b, page) = data.page(b - 1, page);
  }
}

std::vector<PageRule> page_rules(const Data& data) {
  std::vector<PageRule> rules(index(data.size.total_pages()));
  for (std::int64_t b = 0; b < data.size.batch; ++b) {
    for (std::int64_t page = 0; page < data.size.pages_of(data.length(b)); ++page) {
      const std::int64_t valid = std::min(data.size.page_size, data.length(b) - page * data.size.page_size);
      PageRule& rule = rules[index(data.page(b, page))];
      rule.valid = std::max(rule.valid, static_cast<std::int32_t>(valid));
    }
  }
  return rules;
}

}  // namespace kbh::paged_attention
