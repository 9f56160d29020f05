// The element-wise draws of the cases: element i of x (batch, vocab) from the element's own random words, and from
// words that its row shares. A pure function of (key, i), with the operations of philox.hpp alone: the same bits
// everywhere.
#pragma once

#include <cstdint>
#include <limits>

#include "base/philox.hpp"

namespace kbh::softmax {

struct Place {
  std::uint32_t row;
  std::uint32_t column;
};

/// Rows of `vocab` elements. Each has random words of its own.
struct Rows {
  std::uint64_t stream;
  std::uint32_t vocab;
  std::uint32_t bits;  // the least number of them, 1 or more, that counts to vocab

  /// The problem's domain ends at 2^28 elements, so 32-bit division does.
  [[nodiscard]] KBH_HOST_DEVICE Place place(std::uint64_t i) const {
    const auto element = static_cast<std::uint32_t>(i);
    const std::uint32_t row = element / vocab;
    return {row, element - row * vocab};
  }
  [[nodiscard]] KBH_HOST_DEVICE philox::Words words(std::uint32_t row) const { return philox::words(stream, row, 0); }
  /// Words that a row's tile shares.
  [[nodiscard]] KBH_HOST_DEVICE philox::Words words(std::uint32_t row, std::uint32_t tile) const {
    return philox::words(stream, row, tile + 1);
  }
};

inline Rows make_rows(std::uint64_t stream, std::uint32_t vocab) {
  std::uint32_t bits = 1;
  while ((1u << bits) < vocab) ++bits;
  return {stream, vocab, bits};
}

/// Where `column` goes in a random order of the columns that `key` chooses: rounds of odd multiplication and xorshift
/// permute the numbers of so many bits; those that land behind the last column walk on until they are back.
KBH_HOST_DEVICE std::uint32_t shuffled(std::uint32_t column, const Rows& rows, const philox::Words& key) {
  const std::uint32_t mask = (1u << rows.bits) - 1;
  const std::uint32_t half = (rows.bits + 1) / 2;
  std::uint32_t v = column;
  do {
    for (int round = 0; round < 4; ++round) {
      v = (v * (key.v[round] | 1u) + (key.v[(round + 1) & 3] >> 9)) & mask;
      v ^= v >> half;
    }
  } while (v >= rows.vocab);
  return v;
}

KBH_HOST_DEVICE float minus_infinity() { return -std::numeric_limits<float>::infinity(); }

// ---- amplitudes
// -------------------------------------------------------------------------------------------------------

struct Normal {
  float scale;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t) const {
    return philox::mul(scale, philox::normal(w.v[0]));
  }
};

/// `spikes` random columns of each row are `height`, the others normal.
struct Spiked {
  Rows rows;
  float scale;
  float height;
  std::uint32_t spikes;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    const Place at = rows.place(i);
    const bool spike = shuffled(at.column, rows, rows.words(at.row)) < spikes;
    return spike ? height : philox::mul(scale, philox::normal(w.v[0]));
  }
};

/// The first `length` elements of the tensor have another amplitude than the rest.
struct Prefix {
  std::uint64_t length;
  float first;
  float rest;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    return philox::mul(i < length ? first : rest, philox::normal(w.v[0]));
  }
};

/// Each tile of `width` columns of each row has an amplitude of its own, 2^low to 2^high. One tile per row: width =
/// vocab.
struct MixedTiles {
  Rows rows;
  std::uint32_t width;
  float low;
  float high;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    const Place at = rows.place(i);
    const float scale = philox::log_uniform(rows.words(at.row, at.column / width).v[0], low, high);
    return philox::mul(scale, philox::normal(w.v[0]));
  }
};

/// Each column has an amplitude, the same in all rows.
struct MixedColumns {
  Rows rows;
  float low;
  float high;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    const float scale = philox::log_uniform(rows.words(0, rows.place(i).column).v[0], low, high);
    return philox::mul(scale, philox::normal(w.v[0]));
  }
};

/// Normal, and every row shifted by a constant of its own between low and high; every other row, even or odd by
/// `parity`, by the negative of one.
struct Shifted {  // NOLINT(cppcoreguidelines-pro-type-member-init): an aggregate
  Rows rows;
  float scale;
  float low;
  float high;
  std::uint32_t parity = 2;  // neither even nor odd: all alike

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    const std::uint32_t row = rows.place(i).row;
    const float size = philox::add(low, philox::mul(philox::sub(high, low), philox::uniform(rows.words(row).v[0])));
    const float shift = (row & 1u) == parity ? philox::sub(0, size) : size;
    return philox::add(shift, philox::mul(scale, philox::normal(w.v[0])));
  }
};

// ---- orders and levels
// ------------------------------------------------------------------------------------------------

/// Uniform between low and high.
struct Uniform {
  float low;
  float high;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t) const {
    return philox::add(low, philox::mul(philox::sub(high, low), philox::uniform(w.v[0])));
  }
};

/// From low to high in even steps with a random offset within the step: sorted, and different for each seed. high < low
/// falls.
struct Ramp {
  Rows rows;
  float low;
  float high;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    const float at = philox::add(philox::to_float(rows.place(i).column), philox::uniform(w.v[0]));
    return philox::add(low, philox::mul(philox::sub(high, low), philox::div(at, philox::to_float(rows.vocab))));
  }
};

/// One value per row, between -size and size.
struct Equal {
  Rows rows;
  float size;

  KBH_HOST_DEVICE float operator()(const philox::Words&, std::uint64_t i) const {
    return philox::mul(size, philox::sub(philox::mul(2, philox::uniform(rows.words(rows.place(i).row).v[0])), 1));
  }
};

/// One value per row: +-2^-20 .. +-2^5.
struct EqualPower {
  Rows rows;

  KBH_HOST_DEVICE float operator()(const philox::Words&, std::uint64_t i) const {
    const philox::Words w = rows.words(rows.place(i).row);
    return philox::from_bits((w.v[1] & 0x80000000u) | (107u + philox::below(w.v[0], 26)) << 23);
  }
};

/// Normal, and one random column between begin and end is `height`.
struct Peak {
  Rows rows;
  std::uint32_t begin;
  std::uint32_t end;
  float height;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    const Place at = rows.place(i);
    const bool peak = at.column == begin + philox::below(rows.words(at.row).v[0], end - begin);
    return peak ? height : philox::mul(4, philox::normal(w.v[0]));
  }
};

// ---- masks: the rest is normal
// ----------------------------------------------------------------------------------------

/// Whole tiles are masked: each with probability 1/2, one surely, one surely not.
struct MaskedTiles {
  Rows rows;
  std::uint32_t width;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    const Place at = rows.place(i);
    const std::uint32_t tiles = (rows.vocab + width - 1) / width;
    const std::uint32_t tile = at.column / width;
    const std::uint32_t kept = philox::below(rows.words(at.row).v[0], tiles);
    const bool masked = tile == (kept + 1) % tiles || (rows.words(at.row, tile).v[0] & 1u) != 0;
    return masked && tile != kept ? minus_infinity() : philox::mul(4, philox::normal(w.v[0]));
  }
};

/// Columns before (front) or from (back) a random one on are masked: half of the row at least, never all of it.
struct MaskedSide {
  Rows rows;
  bool front;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    const Place at = rows.place(i);
    const std::uint32_t kept = 1 + philox::below(rows.words(at.row).v[0], rows.vocab / 2);
    const bool masked = front ? at.column < rows.vocab - kept : at.column >= kept;
    return masked ? minus_infinity() : philox::mul(4, philox::normal(w.v[0]));
  }
};

/// `kept` random columns remain.
struct MaskedBut {
  Rows rows;
  std::uint32_t kept;

  KBH_HOST_DEVICE float operator()(const philox::Words& w, std::uint64_t i) const {
    const Place at = rows.place(i);
    const bool masked = shuffled(at.column, rows, rows.words(at.row)) >= kept;
    return masked ? minus_infinity() : philox::mul(4, philox::normal(w.v[0]));
  }
};

// ---- sums that are a power of two (power_of_two_sum.hpp)
// --------------------------------------------------------------

/// `ones` columns are 0, one is balance[kind] and all others are small[kind], in random order; kind goes round the
/// rows. The whole row is shifted by a constant between -shift and shift.
struct PowerOfTwoSum {
  Rows rows;
  std::uint32_t ones;
  std::uint32_t first_kind;
  float small[4];
  float balance[4];
  float shift;

  KBH_HOST_DEVICE float operator()(const philox::Words&, std::uint64_t i) const {
    const Place at = rows.place(i);
    const std::uint32_t kind = (at.row + first_kind) & 3u;
    const std::uint32_t position = shuffled(at.column, rows, rows.words(at.row));
    const float unshifted = position < ones ? 0.0f : position == ones ? balance[kind] : small[kind];
    const float part = philox::sub(philox::mul(2, philox::uniform(rows.words(at.row, 0).v[0])), 1);
    return philox::add(unshifted, philox::mul(shift, part));
  }
};

}  // namespace kbh::softmax
