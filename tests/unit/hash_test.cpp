#include "base/hash.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kbh {
namespace {

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfAFileIsThatOfItsContent) {
  const TempDir dir;
  write_atomic(dir.path() / "f", "abc");
  EXPECT_EQ(sha256_file(dir.path() / "f"), sha256_hex("abc"));
  EXPECT_THROW(sha256_file(dir.path() / "missing"), Error);
}

TEST(Hex, IsLowerCaseWithLeadingZeros) {
  EXPECT_EQ(to_hex(std::vector<std::uint8_t>{0x00, 0x0f, 0xf0, 0xff}), "000ff0ff");
  EXPECT_EQ(to_hex({}), "");
}

TEST(Fingerprint, SeesOneBit) {
  std::vector<std::byte> bytes(100'000);
  const std::uint64_t before = fingerprint(bytes);
  EXPECT_EQ(fingerprint(bytes), before);
  bytes[77'777] ^= std::byte{1};
  EXPECT_NE(fingerprint(bytes), before);
}

TEST(RandomBytes, AreOfTheLengthAskedForAndDiffer) {
  std::set<std::string> drawn;
  for (int i = 0; i < 100; ++i) drawn.insert(random_bytes(16));
  EXPECT_EQ(drawn.size(), 100u);
  EXPECT_EQ(drawn.begin()->size(), 16u);
  EXPECT_EQ(random_bytes(0), "");
  EXPECT_EQ(random_bytes(100'000).size(), 100'000u);  // more than one call of the system gives
}

}  // namespace
}  // namespace kbh
