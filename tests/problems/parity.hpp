// How far an answer lies from a public reference's golden output, in units of the problem's parity.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <kbh/numbers.hpp>

#include "problem/problem.hpp"

namespace kbh::golden {

inline double value_of(const TensorSpec& spec, const std::string& bytes, std::size_t i) {
  const ConstTensorView view(&spec, reinterpret_cast<const std::byte*>(bytes.data()));
  switch (spec.dtype) {
    case DType::f32:
      return static_cast<double>(view.as<float>()[i]);
    case DType::bf16:
      return static_cast<double>(from_bf16(view.as<std::uint16_t>()[i]));
    case DType::i64:
      return static_cast<double>(view.as<std::int64_t>()[i]);
    default:
      ADD_FAILURE() << "no golden output has this dtype";
      return 0;
  }
}

/// Largest |d| / bound of parity; `own` gives our value of element i.
template <typename Own>
double parity_ratio(const Parity& parity, const TensorSpec& spec, const std::string& golden, const Own& own) {
  const auto count = static_cast<std::size_t>(spec.elements());
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += own(i) * own(i);
  const double rms = std::sqrt(squares / static_cast<double>(count));
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double error = std::abs(value_of(spec, golden, i) - own(i));
    if (error == 0) continue;
    worst = std::max(worst, error / (parity.relative * std::abs(own(i)) + parity.rms * rms + parity.absolute));
  }
  return worst;
}

/// What two answers may differ by that were each rounded once.
inline Parity twice(Parity parity) {
  parity.relative *= 2;
  return parity;
}

}  // namespace kbh::golden
