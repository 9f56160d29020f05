#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include <kbh/numbers.hpp>

#include "base/philox.hpp"

namespace kbh {
namespace {

/// The finite non-negative numbers of a format with their codes, by value.
template <typename Code, typename From>
std::map<float, Code> numbers_of(From from, Code last) {
  std::map<float, Code> numbers;
  for (std::uint32_t code = 0; code <= last; ++code) numbers[from(static_cast<Code>(code))] = static_cast<Code>(code);
  return numbers;
}

/// The nearest number's code, ties to the even code; found by search, without arithmetic on codes.
template <typename Code>
Code nearest(const std::map<float, Code>& numbers, float value) {
  const auto above = numbers.lower_bound(value);
  if (above == numbers.begin()) return above->second;
  if (above == numbers.end()) return numbers.rbegin()->second;
  const auto below = std::prev(above);
  const double to_above = static_cast<double>(above->first) - static_cast<double>(value);
  const double to_below = static_cast<double>(value) - static_cast<double>(below->first);
  if (to_above != to_below) return to_above < to_below ? above->second : below->second;
  return above->second % 2 == 0 ? above->second : below->second;
}

/// Every number, every midpoint between neighbours, and the floats beside it, of both signs.
template <typename Code, typename From, typename To>
void check_rounding(const std::map<float, Code>& numbers, Code sign, From from, To to) {
  float former = 0;
  for (const auto& [value, code] : numbers) {
    ASSERT_EQ(to(value), code) << value;
    ASSERT_EQ(to(-value), code | sign) << value;
    ASSERT_EQ(from(static_cast<Code>(code | sign)), -value);
    const float middle = static_cast<float>((static_cast<double>(former) + static_cast<double>(value)) / 2);
    for (const float near : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)}) {
      ASSERT_EQ(to(near), nearest(numbers, near)) << near;
      ASSERT_EQ(to(-near), nearest(numbers, near) | sign) << near;
    }
    former = value;
  }
}

TEST(Numbers, Bf16RoundsToNearestEven) {
  const auto numbers = numbers_of<std::uint16_t>(from_bf16, std::uint16_t{0x7f7f});
  check_rounding<std::uint16_t>(numbers, 0x8000, from_bf16, to_bf16);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(to_bf16(HUGE_VALF), 0x7f80);
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(float_of_bits(0x7f800001)))));
}

TEST(Numbers, F16RoundsToNearestEven) {
  const auto numbers = numbers_of<std::uint16_t>(from_f16, std::uint16_t{0x7bff});
  EXPECT_EQ(numbers.rbegin()->first, 65504);
  EXPECT_EQ(from_f16(1), 0x1p-24f);
  check_rounding<std::uint16_t>(numbers, 0x8000, from_f16, to_f16);
  EXPECT_EQ(to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(to_f16(65520), 0x7c00);
  EXPECT_EQ(to_f16(1e30f), 0x7c00);
  EXPECT_EQ(from_f16(0xfc00), -HUGE_VALF);
  EXPECT_TRUE(std::isnan(from_f16(to_f16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Numbers, E4m3RoundsToNearestEvenAndOverflowsToNan) {
  const auto numbers = numbers_of<std::uint8_t>(from_e4m3, std::uint8_t{0x7e});
  EXPECT_EQ(numbers.rbegin()->first, 448);
  EXPECT_EQ(from_e4m3(1), 0x1p-9f);
  EXPECT_EQ(from_e4m3(0x38), 1);
  check_rounding<std::uint8_t>(numbers, 0x80, from_e4m3, to_e4m3);
  EXPECT_EQ(to_e4m3(464), 0x7e);
  EXPECT_EQ(to_e4m3(std::nextafter(464.0f, 1e9f)), 0x7f);
  EXPECT_EQ(to_e4m3(-1e9f), 0xff);
  EXPECT_TRUE(std::isnan(from_e4m3(0xff)));
}

TEST(Numbers, RandomFloatsToo) {
  const auto f16 = numbers_of<std::uint16_t>(from_f16, std::uint16_t{0x7bff});
  const auto e4m3 = numbers_of<std::uint8_t>(from_e4m3, std::uint8_t{0x7e});
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const float value = philox::log_uniform(philox::words(7, i).v[0], -30, 8);
    ASSERT_EQ(to_f16(value), nearest(f16, value)) << value;
    ASSERT_EQ(to_e4m3(value), nearest(e4m3, value)) << value;
  }
}

}  // namespace
}  // namespace kbh
