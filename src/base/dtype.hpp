#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kbh {

/// Element types of tensors. The numbers are part of the C ABI (include/kbh/host.h) and never change.
enum class DType : std::int32_t {
  f32 = 1,
  f64 = 2,
  f16 = 3,
  bf16 = 4,
  e4m3 = 5,
  i8 = 6,
  u8 = 7,
  i32 = 8,
  i64 = 9,
  boolean = 10,
};

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::e4m3:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "fp32";
    case DType::f64:
      return "fp64";
    case DType::f16:
      return "fp16";
    case DType::bf16:
      return "bf16";
    case DType::e4m3:
      return "fp8_e4m3";
    case DType::i8:
      return "int8";
    case DType::u8:
      return "uint8";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::boolean:
      return "bool";
  }
  return "?";
}

}  // namespace kbh
