#include "base/hash.hpp"

#include <openssl/evp.h>
#include <sys/random.h>
#include <xxhash.h>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kbh {

Digest sha256(std::string_view bytes) {
  Digest digest{};
  unsigned int size = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  expect(ok == 1 && size == digest.size(), "SHA-256 is always available");
  return digest;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t b : bytes) {
    text += kDigits[b >> 4];
    text += kDigits[b & 15];
  }
  return text;
}

std::string sha256_file(const std::filesystem::path& path) { return sha256_hex(read_text(path)); }

std::uint64_t fingerprint(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string random_bytes(std::size_t n) {
  std::string bytes(n, '\0');
  std::size_t done = 0;
  while (done < n) {
    const ssize_t got = ::getrandom(bytes.data() + done, n - done, 0);
    if (got < 0) fail_errno("getrandom");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace kbh
