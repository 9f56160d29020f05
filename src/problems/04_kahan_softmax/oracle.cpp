#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.hpp"
#include "problems/04_kahan_softmax/softmax.hpp"

namespace kbh::softmax {
namespace {

// Rows are cut into slices, so that one long row is the work of all processors. Sums are taken slice by slice, whatever
// the number of threads: 64 terms to a partial sum, 2^22 columns at most, so the fp64 sum is good to about 1e-13.
constexpr std::size_t kSlice = std::size_t{1} << 14;
constexpr std::size_t kRun = 64;

struct Slice {
  std::size_t row;
  std::size_t begin, end;  // elements of the tensor
};

std::vector<Slice> slices_of(std::size_t first_row, std::size_t rows, std::size_t vocab) {
  std::vector<Slice> slices;
  for (std::size_t row = first_row; row < first_row + rows; ++row)
    for (std::size_t begin = row * vocab; begin < (row + 1) * vocab; begin += kSlice)
      slices.push_back({row, begin, std::min(begin + kSlice, (row + 1) * vocab)});
  return slices;
}

template <typename Body>
void each(const std::vector<Slice>& slices, const Body& body) {
  const std::size_t typical = slices.front().end - slices.front().begin;
  parallel_for(slices.size(), 1 + kSlice / typical, [&](std::size_t begin, std::size_t end) {
    for (std::size_t s = begin; s < end; ++s) body(slices[s], s);
  });
}

float largest(std::span<const float> x) {
  float most = x[0];
  for (const float value : x) most = value > most ? value : most;
  return most;
}

/// exp(x - m) into `to`; their sum.
double exponentials(std::span<const float> x, double m, std::span<double> to) {
  double sum = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += kRun) {
    double partial = 0;
    for (std::size_t i = begin; i < std::min(begin + kRun, x.size()); ++i) {
      to[i] = std::exp(static_cast<double>(x[i]) - m);
      partial += to[i];
    }
    sum += partial;
  }
  return sum;
}

/// y = e / sum in place, and the scale of each tolerance: why it looks like that stands in cases.cpp.
void normalise(std::span<const float> x, double m, double sum, std::span<double> y, std::span<double> scale) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] /= sum;
    const double below = m - static_cast<double>(x[i]);
    scale[i] = (y[i] > 0 ? (4 + below) * y[i] : 0) + 0x1p-104;  // masked: below is infinite, y is 0
  }
}

void solve(std::size_t first_row, std::size_t rows, std::size_t vocab, std::span<const float> x, Expected& expected) {
  const std::vector<Slice> slices = slices_of(first_row, rows, vocab);
  const std::span<double> y = expected.outputs[0];
  const std::span<double> scale = expected.scales[0];
  const auto part = [](auto array, const Slice& s) { return array.subspan(s.begin, s.end - s.begin); };

  std::vector<float> most(slices.size());
  each(slices, [&](const Slice& s, std::size_t i) { most[i] = largest(part(x, s)); });
  std::vector<double> m(rows, -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    double& of_row = m[slices[i].row - first_row];
    of_row = std::max(of_row, static_cast<double>(most[i]));
  }

  std::vector<double> partial(slices.size());
  each(slices,
       [&](const Slice& s, std::size_t i) { partial[i] = exponentials(part(x, s), m[s.row - first_row], part(y, s)); });
  std::vector<double> sum(rows);
  for (std::size_t i = 0; i < slices.size(); ++i) sum[slices[i].row - first_row] += partial[i];

  each(slices, [&](const Slice& s, std::size_t) {
    normalise(part(x, s), m[s.row - first_row], sum[s.row - first_row], part(y, s), part(scale, s));
  });
}

}  // namespace

Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors) {
  const Sizes size(shape);
  const std::span<const float> x = tensors[0].as<float>();
  Expected expected{{std::vector<double>(x.size())}, {std::vector<double>(x.size())}};
  solve(0, static_cast<std::size_t>(size.batch), static_cast<std::size_t>(size.vocab), x, expected);
  return expected;
}

void oracle_row(const Sizes& size, std::span<const float> x, std::int64_t row, Expected& expected) {
  solve(static_cast<std::size_t>(row), 1, static_cast<std::size_t>(size.vocab), x, expected);
}

}  // namespace kbh::softmax
