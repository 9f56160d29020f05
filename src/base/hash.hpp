#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace kbh {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view bytes);
std::string to_hex(std::span<const std::uint8_t> bytes);
inline std::string sha256_hex(std::string_view bytes) { return to_hex(sha256(bytes)); }
std::string sha256_file(const std::filesystem::path& path);

/// Fast, not cryptographic: to see that memory changed.
std::uint64_t fingerprint(std::span<const std::byte> bytes);

/// `n` bytes from the operating system's secret generator.
std::string random_bytes(std::size_t n);

}  // namespace kbh
