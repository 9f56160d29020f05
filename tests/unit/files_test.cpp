#include "base/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <optional>

#include "base/error.hpp"

namespace kbh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename F>
std::string error_of(ErrorKind kind, F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "no error";
}

/// Sets an environment variable for one test.
class Environment {
 public:
  Environment(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { set(old_); }

 private:
  void set(const std::optional<std::string>& value) {
    if (value)
      ::setenv(name_, value->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST(Files, WhatWasWrittenIsRead) {
  const TempDir dir;
  const std::string content("with\0zero and a long tail ", 26);
  const std::string longer = content + std::string(200'000, 'x');
  write_atomic(dir.path() / "f", content);
  write_atomic(dir.path() / "f", longer);
  EXPECT_EQ(read_text(dir.path() / "f"), longer);
  EXPECT_EQ(mode_of(dir.path() / "f"), 0644u);
  EXPECT_THAT(list_files(dir.path()), ElementsAre("f"));  // no temporary name is left
}

TEST(Files, ErrorsNamePathAndReason) {
  const TempDir dir;
  const fs::path missing = dir.path() / "missing";
  EXPECT_EQ(error_of(ErrorKind::usage, [&] { read_text(missing); }),
            fmt::format("cannot read {}: No such file or directory", missing.string()));
  EXPECT_EQ(error_of(ErrorKind::usage, [&] { read_text(dir.path()); }),
            fmt::format("cannot read {}: Is a directory", dir.path().string()));
  EXPECT_THAT(error_of(ErrorKind::internal, [&] { write_atomic(missing / "f", ""); }),
              HasSubstr((missing / "f").string()));
}

TEST(Files, AFailedWriteLeavesTheOldContent) {
  const TempDir dir;
  fs::create_directory(dir.path() / "target");  // a folder cannot be replaced by a file
  EXPECT_THROW(write_atomic(dir.path() / "target", "new"), Error);
  EXPECT_TRUE(fs::is_directory(dir.path() / "target"));
  EXPECT_TRUE(list_files(dir.path()).empty());
}

TEST(Files, LinesAreAppended) {
  const TempDir dir;
  append_line(dir.path() / "log", "one");
  append_line(dir.path() / "log", "two");
  EXPECT_EQ(read_text(dir.path() / "log"), "one\ntwo\n");
}

TEST(Files, ListIsSortedRelativeAndWithoutLinks) {
  const TempDir dir;
  fs::create_directories(dir.path() / "b" / "c");
  write_atomic(dir.path() / "b" / "c" / "deep", "");
  write_atomic(dir.path() / "a", "");
  fs::create_symlink("/etc/passwd", dir.path() / "link");
  fs::create_directory_symlink("/etc", dir.path() / "folder-link");
  EXPECT_THAT(list_files(dir.path()), ElementsAre("a", "b/c/deep"));
}

TEST(TempDirTest, IsPrivateAndGoesAway) {
  fs::path path;
  {
    TempDir dir("kbh-test");
    path = dir.path();
    write_atomic(path / "f", "x");
    EXPECT_EQ(mode_of(path), 0700u);
    const TempDir moved = std::move(dir);
    EXPECT_EQ(moved.path(), path);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ResourceRoot, IsTheGivenFolderWhenItHoldsTheResources) {
  const TempDir dir;
  const Environment root("KBH_ROOT", dir.path().string());
  EXPECT_THAT(error_of(ErrorKind::machine, [] { resource_root(); }), HasSubstr("KBH_ROOT=" + dir.path().string()));
  fs::create_directories(dir.path() / "decks");
  fs::create_directories(dir.path() / "include" / "kbh");
  write_atomic(dir.path() / "decks" / "cpu.toml", "");
  EXPECT_EQ(resource_root(), fs::canonical(dir.path()));
}

TEST(CacheDir, FollowsTheEnvironmentAndIsPrivate) {
  const TempDir dir;
  const Environment xdg("XDG_CACHE_HOME", (dir.path() / "xdg").string());
  {
    const Environment unset("KBH_CACHE", std::nullopt);
    EXPECT_EQ(cache_dir(), dir.path() / "xdg" / "kbh");
  }
  const Environment given("KBH_CACHE", (dir.path() / "mine").string());
  EXPECT_EQ(cache_dir(), dir.path() / "mine");
  EXPECT_EQ(mode_of(dir.path() / "mine"), 0700u);
}

TEST(CacheDir, ThatCannotBeMadeNamesItself) {
  const TempDir dir;
  write_atomic(dir.path() / "file", "");
  const Environment given("KBH_CACHE", (dir.path() / "file" / "cache").string());
  EXPECT_THAT(error_of(ErrorKind::machine, [] { cache_dir(); }), HasSubstr("file/cache"));
}

}  // namespace
}  // namespace kbh
