// Right softmax kernels as a GPU would compute them: fp32 with a compensated or wider sum, in the variants that decide
// how near an honest answer comes to the bounds. Each difference that a device makes (an approximate exponential or
// reciprocal, log2(e) folded into an FMA, many partial sums) is modelled in plain C++.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::honest_softmax {

enum class Exponential {
  library,             // exp(x - m), correct to an ulp
  folded,              // exp2(fma(x, log2e, -(m * log2e)))
  product_rounded,     // exp2((x - m) * log2e), the product rounded once
  approximate,         // the same with exp2 wrong by up to 2 ulp, but exact at 0, as ex2.approx is
  approximate_folded,  // folded, exp2 wrong by up to 2 ulp
};

enum class Accumulator { kahan, neumaier, two_floats, fp64 };

enum class Reciprocal {
  divide,       // y = e / S
  multiply,     // y = e * (1 / S)
  approximate,  // the same with 1 / S wrong by an ulp, but exact at powers of two, as rcp.approx is
};

struct Kernel {
  Exponential exponential = Exponential::library;
  Accumulator accumulator = Accumulator::fp64;
  Reciprocal reciprocal = Reciprocal::multiply;
  std::int64_t partials = 1;  // accumulators, merged by a tree
  bool contiguous = false;    // each adds a contiguous run of the row; else every partials-th element
  bool own_maximum = false;   // each has its own maximum and is rescaled at the end
};

constexpr float kLog2e = 1.44269504f;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// -count .. count ulps up or down, as the value's own bits choose.
inline float off_by(float value, std::uint32_t salt, int count) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t hash = (bits ^ salt) * 0x9e3779b1u >> 16;
  const auto ulps = static_cast<int>(hash % static_cast<std::uint32_t>(2 * count + 1)) - count;
  return bits < 0x01000000u ? value : float_of_bits(bits + static_cast<std::uint32_t>(ulps));
}

inline float exponential(Exponential how, float x, float m) {
  if (x == kLowest) return 0;
  const float folded = std::fma(x, kLog2e, -(m * kLog2e));
  const float product = (x - m) * kLog2e;
  switch (how) {
    case Exponential::library:
      return std::exp(x - m);
    case Exponential::folded:
      return std::exp2(folded);
    case Exponential::product_rounded:
      return std::exp2(product);
    case Exponential::approximate:
      return product == 0 ? 1 : off_by(std::exp2(product), bits_of(x), 2);
    case Exponential::approximate_folded:
      return folded == 0 ? 1 : off_by(std::exp2(folded), bits_of(x), 2);
  }
  return 0;
}

/// A sum as two floats (or one double in `wide`), with its maximum.
struct Sum {
  float m = kLowest;
  float high = 0;
  float low = 0;
  double wide = 0;

  void add_two_sum(float value) {
    const float sum = high + value;
    const float part = sum - high;
    low += (high - (sum - part)) + (value - part);
    high = sum;
  }
  /// high + low is what it was, low at most half an ulp of high.
  void renormalise() {
    const float sum = high + low;
    low -= sum - high;
    high = sum;
  }
  void add(Accumulator how, float value) {
    switch (how) {
      case Accumulator::kahan: {
        const float wanted = value + low;
        const float next = high + wanted;
        low = wanted - (next - high);
        high = next;
        return;
      }
      case Accumulator::neumaier:
        return add_two_sum(value);
      case Accumulator::two_floats:
        add_two_sum(value);
        return renormalise();
      case Accumulator::fp64:
        wide += static_cast<double>(value);
        return;
    }
  }
  void rescale(float factor) {
    const float scaled = high * factor;
    low = std::fma(high, factor, -scaled) + low * factor;
    high = scaled;
    wide *= static_cast<double>(factor);
  }
  void merge(const Sum& other) {
    add_two_sum(other.high);
    low += other.low;
    renormalise();
    wide += other.wide;
  }
};

inline void run_row(const Kernel& kernel, const float* x, float* y, std::int64_t n) {
  const float m = *std::max_element(x, x + n);
  std::vector<Sum> sums(static_cast<std::size_t>(kernel.partials), Sum{});
  const std::int64_t run = (n + kernel.partials - 1) / kernel.partials;
  const auto sum_of = [&](std::int64_t i) -> Sum& {
    return sums[static_cast<std::size_t>(kernel.contiguous ? i / run : i % kernel.partials)];
  };
  for (std::int64_t i = 0; i < n; ++i) sum_of(i).m = kernel.own_maximum ? std::max(sum_of(i).m, x[i]) : m;
  for (std::int64_t i = 0; i < n; ++i)
    sum_of(i).add(kernel.accumulator, exponential(kernel.exponential, x[i], sum_of(i).m));
  for (Sum& sum : sums)
    if (sum.m != m) sum.rescale(exponential(kernel.exponential, sum.m, m));
  for (std::size_t width = 1; width < sums.size(); width *= 2)
    for (std::size_t i = 0; i + width < sums.size(); i += 2 * width) sums[i].merge(sums[i + width]);

  const bool wide = kernel.accumulator == Accumulator::fp64;
  const float total = wide ? static_cast<float>(sums[0].wide) : sums[0].high + sums[0].low;
  float inverse = 1.0f / total;
  const bool power_of_two = (bits_of(total) & 0x7fffffu) == 0;
  if (kernel.reciprocal == Reciprocal::approximate && !power_of_two) inverse = off_by(inverse, 1, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const float e = exponential(kernel.exponential, x[i], m);
    y[i] = kernel.reciprocal == Reciprocal::divide ? e / total : e * inverse;
  }
}

inline void run(const Kernel& kernel, const float* x, float* y, std::int64_t batch, std::int64_t n) {
  for (std::int64_t row = 0; row < batch; ++row) run_row(kernel, x + row * n, y + row * n, n);
}

inline std::string name_of(const Kernel& k) {
  static constexpr const char* kExponentials[] = {"library", "folded", "product_rounded", "approximate",
                                                  "approximate_folded"};
  static constexpr const char* kAccumulators[] = {"kahan", "neumaier", "two_floats", "fp64"};
  static constexpr const char* kReciprocals[] = {"divide", "multiply", "approximate"};
  return std::string(kExponentials[static_cast<int>(k.exponential)]) + " " +
         kAccumulators[static_cast<int>(k.accumulator)] + " " + kReciprocals[static_cast<int>(k.reciprocal)] + " " +
         std::to_string(k.partials) + (k.contiguous ? " contiguous" : "") + (k.own_maximum ? " own maximum" : "");
}

/// Every exponential, accumulator and reciprocal, and several ways to share out the row.
inline std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  for (const auto e : {Exponential::library, Exponential::folded, Exponential::product_rounded,
                       Exponential::approximate, Exponential::approximate_folded})
    for (const auto r : {Reciprocal::divide, Reciprocal::multiply, Reciprocal::approximate})
      all.push_back({e, Accumulator::fp64, r, 32});
  for (const auto a : {Accumulator::kahan, Accumulator::neumaier, Accumulator::two_floats, Accumulator::fp64})
    for (const std::int64_t partials : {1, 32, 256, 1024, 8192})
      for (const bool contiguous : {false, true})
        all.push_back({Exponential::library, a, Reciprocal::multiply, partials, contiguous});
  all.push_back({Exponential::approximate, Accumulator::neumaier, Reciprocal::approximate, 512, false, true});
  all.push_back({Exponential::product_rounded, Accumulator::kahan, Reciprocal::approximate, 256, true, true});
  return all;
}

}  // namespace kbh::honest_softmax
