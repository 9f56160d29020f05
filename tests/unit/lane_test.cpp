#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"
#include "device/cpu/shared_memory.hpp"
#include "inspect/elf.hpp"
#include "inspect/tripwires.hpp"
#include "lane/poison.hpp"
#include "lane/protocol.hpp"
#include "lane/submission.hpp"

namespace kbh {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Flags, TheFirstCommentLineNamesThem) {
  EXPECT_EQ(flags_of("// kbh: -O2 -DTILE=64\nint x;", "f"), (std::vector<std::string>{"-O2", "-DTILE=64"}));
  EXPECT_THAT(flags_of("int x;\n// kbh: -O2", "f"), IsEmpty());
}

TEST(Flags, WhatReachesBeyondCodeGenerationIsRefused) {
  for (const char* flag :
       {"-fplugin=x.so", "-B/tmp", "-Wl,-rpath,/x", "@file", "-include/etc/passwd", "-I/", "-o/x", "-D", "-DX=\"a\"",
        "-fuse-ld=x", "-specs=x", "-wrapper,x", "/etc/passwd", "-ofoo", "-L/", "-lm", "-xc", "-DX=$(id)"})
    EXPECT_THAT(message_of([&] { flags_of(std::string("// kbh: ") + flag + "\n", "f"); }), HasSubstr("not allowed"))
        << flag;
}

TEST(Submission, TheHashCoversNamesAndContents) {
  const TempDir a;
  write_atomic(a.path() / "submission.cpp", "x");
  write_atomic(a.path() / "b.hpp", "y");
  const std::string first = read_submission(a.path(), std::nullopt).sha256;
  fs::rename(a.path() / "b.hpp", a.path() / "c.hpp");
  const std::string renamed = read_submission(a.path(), std::nullopt).sha256;
  write_atomic(a.path() / "c.hpp", "z");
  EXPECT_NE(first, renamed);
  EXPECT_NE(renamed, read_submission(a.path(), std::nullopt).sha256);
}

TEST(Elf, OurOwnBinaryIsReadAndMangledBytesAreSurvived) {
  const std::string bytes = read_text("/proc/self/exe");
  const ElfCensus census = read_elf(bytes);
  EXPECT_THAT(census.libraries, Contains(HasSubstr("libc.so")));
  EXPECT_THAT(census.imported, Contains("read"));
  EXPECT_THAT(read_elf("not an object").problems, Contains(HasSubstr("not a 64-bit ELF")));
  // Every truncation and a few hundred bit flips of the header must be survived (run under ASan too).
  std::string head = bytes.substr(0, 4096);
  for (std::size_t cut = 0; cut < 256; ++cut) read_elf(std::string_view(head).substr(0, cut));
  for (std::size_t i = 16; i < 64; ++i) {
    std::string mangled = bytes;
    mangled[i] = static_cast<char>(mangled[i] ^ 0xFF);
    read_elf(mangled);
  }
}

TEST(Tripwires, LabelsNameFileAndLine) {
  Submission s;
  s.files = {{"submission.cpp", "int a;\nvoid f() { dlopen(0, 0); }\nint my_fork_count;\n"}};
  const std::vector<Label> labels = labels_of(s, {});
  ASSERT_EQ(labels.size(), 1U);
  EXPECT_EQ(labels[0].where, "submission.cpp:2 (dlopen)");
}

TEST(Poison, NoRightAnswerLooksLikeIt) {
  for (const DType type : {DType::f32, DType::f64, DType::i64, DType::i32}) {
    const TensorSpec spec{"t", Role::output, type, {1000}};
    std::vector<std::byte> bytes(spec.bytes());
    poison({&spec, bytes.data()}, 7);
    for (std::size_t i = 0; i < 1000; ++i) {
      const std::byte* at = bytes.data() + i * size_of(type);
      float f = 0;
      double d = 0;
      std::int64_t l = 0;
      std::int32_t n = 0;
      std::memcpy(&f, at, std::min(sizeof f, size_of(type)));
      if (type == DType::f32) EXPECT_TRUE(std::isnan(f));
      if (type == DType::f64) EXPECT_TRUE((std::memcpy(&d, at, 8), std::isnan(d)));
      if (type == DType::i64) EXPECT_TRUE((std::memcpy(&l, at, 8), l < 0));
      if (type == DType::i32) EXPECT_TRUE((std::memcpy(&n, at, 4), n < 0));
    }
  }
}

TEST(SharedArena, InputsCannotBeMappedWritableAnyMore) {
  const cpu::SharedArena arena(8192, cpu::Access::read_only, "test");
  arena.data()[0] = std::byte{1};  // ours
  EXPECT_EQ(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd(), 0), MAP_FAILED);
  void* theirs = ::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, arena.fd(), 0);
  ASSERT_NE(theirs, MAP_FAILED);
  EXPECT_NE(::mprotect(theirs, 8192, PROT_READ | PROT_WRITE), 0);
  EXPECT_NE(::ftruncate(arena.fd(), 0), 0);
  EXPECT_NE(::pwrite(arena.fd(), "x", 1, 0), 1);
  ::munmap(theirs, 8192);
}

TEST(Placement, BuffersEndAtOrStartBehindAPageAndCanariesSeeEveryByte) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{4096}, std::size_t{12000}})
    for (const bool at_end : {false, true}) {
      std::size_t cursor = 0;
      const cpu::Placement p = cpu::place(bytes, at_end, &cursor);
      EXPECT_EQ(p.offset % cpu::kAlignment, 0U);
      EXPECT_EQ(cursor % cpu::kPage, 0U);
      if (!at_end) EXPECT_EQ(p.offset, p.page_offset);
      EXPECT_LT(p.page_offset + p.pages_bytes - (p.offset + bytes), at_end ? cpu::kAlignment : cpu::kPage);
      std::vector<std::byte> arena(cursor);
      cpu::write_canary(arena.data(), p, 99);
      for (std::size_t i = 0; i < cursor; ++i) {
        arena[i] = arena[i] ^ std::byte{1};
        EXPECT_EQ(cpu::canary_intact(arena.data(), p, 99), i >= p.offset && i < p.offset + bytes) << i;
        arena[i] = arena[i] ^ std::byte{1};
      }
    }
}

class Protocol : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    a_ = UniqueFd(ends[0]);
    b_ = UniqueFd(ends[1]);
  }
  std::string refusal() {
    std::string problem;
    EXPECT_FALSE(protocol::receive(b_.get(), 0.2, &problem).has_value());
    return problem;
  }
  void raw(std::uint32_t length, const std::string& text) {
    ASSERT_EQ(::write(a_.get(), &length, 4), 4);
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t n = ::write(a_.get(), text.data() + sent, text.size() - sent);
      ASSERT_GT(n, 0);
      sent += static_cast<std::size_t>(n);
    }
  }
  UniqueFd a_;
  UniqueFd b_;
};

TEST_F(Protocol, MessagesTravelWithDescriptors) {
  const UniqueFd file(::open("/dev/null", O_RDONLY));
  const int fds[] = {file.get()};
  ASSERT_TRUE(protocol::send(a_.get(), {{"op", "x"}}, fds));
  std::string problem;
  const auto received = protocol::receive(b_.get(), 1, &problem);
  ASSERT_TRUE(received.has_value()) << problem;
  EXPECT_EQ(received->message.at("op"), "x");
  EXPECT_EQ(received->fds.size(), 1U);
}

TEST_F(Protocol, HostilePeersAreRefused) {
  EXPECT_EQ(refusal(), "timeout");
  raw(5, "]]]]]");
  EXPECT_EQ(refusal(), "not a JSON object");
  raw(0xFFFFFFFF, "");
  EXPECT_EQ(refusal(), "message too long");
}

TEST_F(Protocol, DeepNestingDoesNotOverflowTheStack) {
  std::thread sender([&] { raw(2'000'000, std::string(2'000'000, '[')); });  // more than a socket holds
  EXPECT_EQ(refusal(), "not a JSON object");
  sender.join();
}

TEST_F(Protocol, AHalfMessageEndsWithTheTimeout) {
  raw(100, "{");
  EXPECT_EQ(refusal(), "timeout");
  a_.reset();
  EXPECT_EQ(refusal(), "closed");
}

}  // namespace
}  // namespace kbh
