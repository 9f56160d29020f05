// The k greatest of one row, fed segment by segment.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "group.hpp"
#include "order.hpp"

namespace topk {

inline constexpr int64_t kSegment = 16384;  // floats that one scan takes at most: 64 KiB, well inside any L2

/// Elements below `floor_` cannot be among the k greatest any more; those at or above it are kept as keys.
///
/// The floor rests on one fact: when k groups have maxima >= t, then at least k elements are >= t. So the cheap
/// streaming pass computes maxima only, and a floor found among them leaves little more than k groups to look into.
class Selector {
 public:
  explicit Selector(int64_t k) : k_(k), keys_(static_cast<size_t>(std::max<int64_t>(4 * k, 256) + kGroup)) {}

  void reset() {
    count_ = 0;
    floor_ = -std::numeric_limits<float>::infinity();
  }

  /// Takes in x[0..n), n <= kSegment, whose first element is number `first` of the row. Prefetches up to `stream_end`.
  void scan(const float* x, int64_t n, int64_t first, const float* stream_end) {
    const int64_t groups = n / kGroup;
    stream_maxima(x, groups, stream_end);
    rank_maxima(groups);
    raise_floor(groups);
    look_into_greatest(x, groups, first);
    for (int64_t g = 0; g < groups; g += kGroup) {
      for (uint64_t bits = at_least(&maxima_[g], floor_); bits != 0; bits &= bits - 1)
        look_into(x, g + std::countr_zero(bits), first);
    }
    for (int64_t i = groups * kGroup; i < n; ++i)
      if (x[i] >= floor_) add(make_key(x[i], first + i));
  }

  void add(Key key) {
    keys_[static_cast<size_t>(count_++)] = key;
    if (count_ + kGroup > static_cast<int64_t>(keys_.size())) prune();
  }

  /// The k greatest so far (fewer when fewer were fed), in any order. Valid until the next call.
  std::span<const Key> best() {
    if (count_ > k_) prune();
    return {keys_.data(), static_cast<size_t>(count_)};
  }

  /// Writes the k greatest in descending order. At least k elements were fed.
  void write(float* values, int64_t* indices) {
    if (count_ > kRankSort) prune();
    if (count_ > kRankSort) {
      std::sort(keys_.begin(), keys_.begin() + count_, std::greater<>());
    } else {
      rank_sort();
    }
    for (int64_t i = 0; i < k_; ++i) {
      values[i] = value_of(keys_[static_cast<size_t>(i)]);
      indices[i] = index_of(keys_[static_cast<size_t>(i)]);
    }
  }

 private:
  static constexpr int64_t kRankSort = 96;  // more keys than this are sorted with std::sort
  static constexpr int64_t kAhead = 1024;   // floats between reading and prefetching: one page

  /// Fills maxima_; behind the last group stand NaN up to the end of the word, which no floor lets pass.
  void stream_maxima(const float* x, int64_t groups, const float* stream_end) {
    const auto block = [&](int64_t g) {
      const float* here = x + g * kGroup;
      block_maxima(here, here + std::min(kAhead, stream_end - here - kBlock * kGroup), &maxima_[g]);
    };
    int64_t g = 0;
    for (; g + kBlock <= groups; g += kBlock) block(g);
    if (g < groups && groups >= kBlock) block(groups - kBlock);  // overlaps the block before it
    if (groups < kBlock)
      for (; g < groups; ++g) maxima_[g] = group_max(x + g * kGroup);
    for (g = groups; g % kGroup != 0; ++g) maxima_[g] = std::numeric_limits<float>::quiet_NaN();
  }

  void rank_maxima(int64_t groups) {
    least_ = std::numeric_limits<int32_t>::max();
    greatest_ = std::numeric_limits<int32_t>::min();
    for (int64_t g = 0; g < groups; ++g) {
      ranks_[g] = rank_of(maxima_[g]);
      least_ = std::min(least_, ranks_[g]);
      greatest_ = std::max(greatest_, ranks_[g]);
    }
  }

  /// The floor becomes (nearly) the k-th greatest maximum, when that is higher. Bisection, because counting is a few
  /// vector instructions and takes the same time for any order of the data.
  void raise_floor(int64_t groups) {
    if (groups < k_) return;
    int32_t low = std::max(least_, rank_of(floor_)), high = greatest_;
    const int64_t enough = k_ + k_ / 4 + 2;
    int64_t passing = passing_groups(groups, low);
    if (passing < k_) return;
    while (passing > enough && low < high) {
      const int32_t middle = std::midpoint(high, low);
      const int64_t count = passing_groups(groups, middle);
      if (count < k_) {
        high = middle - 1;
      } else {
        low = middle;
        passing = count;
      }
    }
    floor_ = float_of(low);
  }

  int64_t passing_groups(int64_t groups, int32_t rank) const {
    int32_t count = 0;
    for (int64_t g = 0; g < groups; ++g) count += ranks_[g] >= rank;
    return count;
  }

  /// In rising or falling data the group of the greatest maximum holds most of the best: when half of it passes, the
  /// floor that it leaves shuts out the other groups. Looked into in any other order, each would renew all k.
  void look_into_greatest(const float* x, int64_t groups, int64_t first) {
    for (int64_t g = 0; g < groups; g += kGroup) {
      const uint64_t bits = at_least(&maxima_[g], float_of(greatest_));
      if (bits == 0) continue;
      const int64_t greatest = g + std::countr_zero(bits), before = count_;
      look_into(x, greatest, first);
      if (count_ - before >= kGroup / 2) prune();
      maxima_[greatest] = std::numeric_limits<float>::quiet_NaN();  // done
      return;
    }
  }

  /// Keeps what passes of group g of the segment.
  void look_into(const float* x, int64_t g, int64_t first) {
    for (uint64_t bits = at_least(x + g * kGroup, floor_); bits != 0; bits &= bits - 1) {
      const int64_t i = g * kGroup + std::countr_zero(bits);
      keys_[static_cast<size_t>(count_++)] = make_key(x[i], first + i);
    }
    if (count_ + kGroup > static_cast<int64_t>(keys_.size())) prune();
  }

  /// Keeps the k greatest; what comes later must be greater than all of those it would replace.
  void prune() {
    if (count_ < k_) return;
    std::nth_element(keys_.begin(), keys_.begin() + (k_ - 1), keys_.begin() + count_, std::greater<>());
    count_ = k_;
    floor_ = next_above(value_of(keys_[static_cast<size_t>(k_ - 1)]));
  }

  /// Keys are distinct, so the number of greater ones is a key's place. Quadratic, but no branch depends on the data:
  /// 42 keys are written in 0.14 us; with std::sort and its mispredictions it was 0.48.
  void rank_sort() {
    using Keys = Key __attribute__((vector_size(64)));
    constexpr int64_t kLanes = sizeof(Keys) / sizeof(Key);
    Key sorted[kRankSort + kLanes];
    std::fill_n(keys_.begin() + count_, kLanes, Key{0});
    for (int64_t i = 0; i < count_; i += kLanes) {
      Keys mine, place{};
      std::memcpy(&mine, &keys_[static_cast<size_t>(i)], sizeof mine);
      for (int64_t j = 0; j < count_; ++j) place -= static_cast<Keys>(keys_[static_cast<size_t>(j)] > mine);
      for (int64_t lane = 0; lane < kLanes; ++lane) sorted[place[lane]] = mine[lane];
    }
    std::copy_n(sorted, count_, keys_.begin());
  }

  int64_t k_;
  int64_t count_ = 0;
  float floor_ = -std::numeric_limits<float>::infinity();
  std::vector<Key> keys_;
  float maxima_[kSegment / kGroup];   // of the groups of the segment at hand
  int32_t ranks_[kSegment / kGroup];  // the same, for the bisection
  int32_t least_ = 0, greatest_ = 0;  // of ranks_
};

}  // namespace topk
