#include "lane/poison.hpp"

namespace kbh {
namespace {

std::uint64_t noise(std::uint64_t salt, std::uint64_t i) {
  std::uint64_t z = salt + (i + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  return z ^ (z >> 29);
}

template <typename Word, typename Make>
void fill(const TensorView& tensor, std::uint64_t salt, Make make) {
  auto* words = reinterpret_cast<Word*>(tensor.data);
  const auto count = static_cast<std::uint64_t>(tensor.spec->elements());
  for (std::uint64_t i = 0; i < count; ++i) words[i] = static_cast<Word>(make(noise(salt, i)));
}

}  // namespace

void poison(const TensorView& tensor, std::uint64_t salt) {
  switch (tensor.spec->dtype) {
    case DType::f32:  // exponent all ones, quiet bit clear, mantissa never zero
      return fill<std::uint32_t>(tensor, salt, [](std::uint64_t n) { return 0x7F800001U | (n & 0x803FFFFEU); });
    case DType::f64:
      return fill<std::uint64_t>(tensor, salt,
                                 [](std::uint64_t n) { return 0x7FF0000000000001U | (n & 0x8007FFFFFFFFFFFEU); });
    case DType::f16:
      return fill<std::uint16_t>(tensor, salt, [](std::uint64_t n) { return 0x7C01U | (n & 0x81FEU); });
    case DType::bf16:
      return fill<std::uint16_t>(tensor, salt, [](std::uint64_t n) { return 0x7F81U | (n & 0x803EU); });
    case DType::e4m3:
      return fill<std::uint8_t>(tensor, salt, [](std::uint64_t n) { return 0x7FU | (n & 0x80U); });
    case DType::i64:
      return fill<std::uint64_t>(tensor, salt, [](std::uint64_t n) { return 0x8000000000000000U | (n >> 8); });
    case DType::i32:
      return fill<std::uint32_t>(tensor, salt, [](std::uint64_t n) { return 0x80000000U | (n & 0x00FFFFFFU); });
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return fill<std::uint8_t>(tensor, salt, [](std::uint64_t n) { return n | 0x80U; });
  }
}

}  // namespace kbh
