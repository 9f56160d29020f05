// Exact selection of the largest keys of a stream. Keys are integers, so that the order is total whatever the data.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

namespace kbh::topk {

/// Integers in the order of the floats: -inf lowest, -0 just below +0, +inf highest.
inline std::uint32_t ordered_key(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return bits ^ ((bits >> 31) != 0 ? 0xffffffffu : 0x80000000u);
}

inline float value_of_key(std::uint32_t key) {
  return std::bit_cast<float>(key ^ ((key >> 31) != 0 ? 0x80000000u : 0xffffffffu));
}

/// The `count` largest of the keys offered. Keeps a buffer of a few times that many and cuts it when it is full: a key
/// that cannot win costs one comparison, and even ascending keys cost a constant each.
template <typename Key>
class Largest {
 public:
  explicit Largest(std::size_t count) : count_(count), capacity_(count + std::max<std::size_t>(count, 1024)) {
    keys_.reserve(capacity_);
  }

  void offer(Key key) {
    if (full() && key <= threshold_) return;
    keys_.push_back(key);
    if (keys_.size() == capacity_) cut();
  }

  /// True when `threshold` holds: a key that does not exceed it is not wanted any more.
  [[nodiscard]] bool full() const { return cut_once_; }
  [[nodiscard]] Key threshold() const { return threshold_; }

  /// Largest first; fewer than `count` when fewer were offered.
  [[nodiscard]] std::vector<Key> descending() const {
    std::vector<Key> keys = keys_;
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(std::min(count_, keys.size()));
    std::partial_sort(keys.begin(), end, keys.end(), std::greater<>());
    keys.erase(end, keys.end());
    return keys;
  }

 private:
  void cut() {
    const auto last = keys_.begin() + static_cast<std::ptrdiff_t>(count_ - 1);
    std::nth_element(keys_.begin(), last, keys_.end(), std::greater<>());
    threshold_ = *last;
    keys_.resize(count_);
    cut_once_ = true;
  }

  std::size_t count_;
  std::size_t capacity_;
  std::vector<Key> keys_;
  Key threshold_ = 0;
  bool cut_once_ = false;
};

}  // namespace kbh::topk
