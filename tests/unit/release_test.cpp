#include "deck/release.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"

namespace kbh {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A small tree with one deck and one problem.
class Releases : public ::testing::Test {
 protected:
  void SetUp() override {
    write("decks/d.toml", deck(1, "t_base_us = 31.5\n"));
    write("src/problems/05_topk/problem.toml",
          read_text(fs::path(KBH_SOURCE_DIR) / "src/problems/05_topk/problem.toml"));
    write("src/problems/05_topk/cases.cpp", "one\n");
    write("src/problems/05_topk/mutants.cpp", "wrong\n");
    lock("");
  }

  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_.path() / file).parent_path());
    write_atomic(root_.path() / file, text);
  }
  void lock(const std::string& text) { write("decks/released.lock", text); }

  static std::string deck(int version, const std::string& more) {
    return fmt::format(
        "title = \"D\"\nversion = {}\ndevice = \"cpu\"\nlanes = [\"host\"]\nmeasured_peaks = true\n"
        "[[problems.05_topk]]\nbatch = 1\nn = 5\nk = 5\n{}",
        version, more);
  }

  [[nodiscard]] std::string deck_hash() const { return sha256_hex(read_text(root_.path() / "decks/d.toml")); }
  [[nodiscard]] std::string problem_hash() const { return problem_sha256(root_.path() / "src/problems/05_topk"); }

  static std::string entry(std::string_view kind, std::string_view name, int version, std::string_view hash) {
    return fmt::format("[[{}]]\nname = \"{}\"\nversion = {}\nsha256 = \"{}\"\n", kind, name, version, hash);
  }
  void release_both() { lock(entry("deck", "d", 1, deck_hash()) + entry("problem", "05_topk", 1, problem_hash())); }

  [[nodiscard]] std::vector<std::string> faults() const { return release_faults(root_.path()); }

  TempDir root_;
};

TEST_F(Releases, ACompleteDeckMustBeListedWithItsProblems) {
  EXPECT_THAT(faults(), ElementsAre(AllOf(HasSubstr("deck d is released"), HasSubstr(deck_hash())),
                                    AllOf(HasSubstr("problem 05_topk is released"), HasSubstr(problem_hash()))));
  release_both();
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Releases, WithoutBaselinesNothingIsReleased) {
  write("decks/d.toml", deck(1, ""));
  EXPECT_THAT(faults(), IsEmpty());
  write("decks/d.toml", deck(7, ""));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Releases, ADeckThatChangesIsAFault) {
  release_both();
  write("decks/d.toml", deck(1, "t_base_us = 30\n"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("deck d version 1 was released and has changed")));
  write("decks/d.toml", deck(1, ""));  // taking the baseline away does not help
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("deck d version 1 was released and has changed")));
}

TEST_F(Releases, AProblemThatChangesIsAFault) {
  release_both();
  write("src/problems/05_topk/cases.cpp", "two\n");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("problem 05_topk version 1 was released and has changed")));
  write("src/problems/05_topk/cases.cpp", "one\n");
  write("src/problems/05_topk/more.cpp", "");  // a file more, too
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("problem 05_topk version 1 was released and has changed")));
}

TEST_F(Releases, MutantsMayJoin) {
  release_both();
  write("src/problems/05_topk/mutants.cpp", "wrong in another way\n");
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Releases, ANewVersionStandsBesideTheOld) {
  release_both();
  const std::string listed = read_text(root_.path() / "decks/released.lock");
  write("decks/d.toml", deck(2, "t_base_us = 30\n"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("deck d is released")));  // not yet listed
  lock(listed + entry("deck", "d", 2, deck_hash()));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Releases, VersionsDoNotGoBackOrDisappear) {
  lock(entry("deck", "d", 2, deck_hash()) + entry("deck", "d", 1, deck_hash()) +
       entry("deck", "gone", 1, std::string(64, '0')) + entry("problem", "05_topk", 1, problem_hash()));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("deck d version 2 was released; it says version 1 now"),
                                    HasSubstr("deck gone version 1 was released and is gone")));
}

TEST_F(Releases, AnUnpackedArchiveHasNoProblemsToCompare) {
  release_both();
  fs::remove_all(root_.path() / "src");
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Releases, TheListIsReadStrictly) {
  const auto refusal = [&](const std::string& text) -> std::string {
    lock(text);
    try {
      (void)faults();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "accepted";
  };
  const std::string hash(64, 'a');
  EXPECT_THAT(refusal("[[dek]]\n"), HasSubstr("did you mean deck?"));
  EXPECT_THAT(refusal("deck = \n"), HasSubstr("not TOML"));
  EXPECT_THAT(refusal("[[deck]]\nname = \"d\"\nversion = 1\n"), HasSubstr("sha256 is missing"));
  EXPECT_THAT(refusal(entry("deck", "d", 0, hash)), HasSubstr("version is 0"));
  EXPECT_THAT(refusal(entry("deck", "d", 1, "abc")), HasSubstr("expected 64 hexadecimal digits"));
  EXPECT_THAT(refusal(entry("deck", "d", 1, hash) + entry("deck", "d", 1, hash)), HasSubstr("stands there twice"));
  fs::remove(root_.path() / "decks/released.lock");
  EXPECT_THROW((void)faults(), Error);
}

TEST(ReleasedVersions, NothingOfThisTreeHasChanged) { EXPECT_THAT(release_faults(KBH_SOURCE_DIR), IsEmpty()); }

}  // namespace
}  // namespace kbh
