#include "lane/headers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kbh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(QuotedIncludes, AreFoundHoweverTheyAreWritten) {
  EXPECT_THAT(quoted_includes("#include \"a.hpp\"\n  #  include\t\"sub/b.hpp\"  // why\n#include\"c.hpp\""),
              ElementsAre("a.hpp", "sub/b.hpp", "c.hpp"));
  EXPECT_THAT(quoted_includes("#include \"a.hpp\"\r\n"), ElementsAre("a.hpp"));
}

TEST(QuotedIncludes, NothingElseIsOne) {
  EXPECT_THAT(quoted_includes("#include <vector>\n#include \"\"\n#include \"open\n#includes\n// #include \"x\"\n"
                              "#import \"y\"\nint a; #include \"z\"\n#\n#include\n\"w\"\n"),
              IsEmpty());
  EXPECT_THAT(quoted_includes(""), IsEmpty());
}

/// A folder with files in it, beside a secret.
class Headers : public ::testing::Test {
 protected:
  void SetUp() override {
    write("secret.hpp", "secret\n");
    fs::create_directories(folder());
  }

  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_.path() / file).parent_path());
    write_atomic(root_.path() / file, text);
  }
  [[nodiscard]] fs::path folder() const { return root_.path() / "own"; }

  [[nodiscard]] std::vector<std::string> brought(const std::string& source) const {
    std::vector<std::string> names;
    for (const SourceFile& file : included_headers(folder(), source)) names.push_back(file.path.string());
    return names;
  }

  [[nodiscard]] std::string refusal(const std::string& source) const {
    try {
      (void)brought(source);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "accepted";
  }

  TempDir root_;
};

TEST_F(Headers, ComeAlongWithWhatTheyInclude) {
  write("own/a.hpp", "#include \"sub/b.hpp\"\n");
  write("own/sub/b.hpp", "#include \"c.hpp\"\n#include \"d.hpp\"\n");
  write("own/sub/c.hpp", "beside\n");
  write("own/c.hpp", "not this one: the file beside is found first\n");
  write("own/d.hpp", "from the folder\n");
  write("own/unused.hpp", "");
  EXPECT_THAT(brought("#include <vector>\n#include \"a.hpp\"\n"),
              ElementsAre("a.hpp", "d.hpp", "sub/b.hpp", "sub/c.hpp"));
  EXPECT_EQ(included_headers(folder(), "#include \"d.hpp\"").front().content, "from the folder\n");
}

TEST_F(Headers, ComeOnceHoweverOftenAndInCircles) {
  write("own/a.hpp", "#include \"b.hpp\"\n#include \"a.hpp\"\n#include \"./a.hpp\"\n");
  write("own/b.hpp", "#include \"a.hpp\"\n#include \"x/../b.hpp\"\n");
  EXPECT_THAT(brought("#include \"a.hpp\"\n#include \"a.hpp\"\n#include \"b.hpp\"\n"), ElementsAre("a.hpp", "b.hpp"));
}

TEST_F(Headers, OutsideOfTheFolderNothingIsRead) {
  write("own/sub/up.hpp", "#include \"../../secret.hpp\"\n#include \"../inside.hpp\"\n");
  write("own/inside.hpp", "");
  EXPECT_THAT(brought("#include \"../secret.hpp\"\n#include \"" + (root_.path() / "secret.hpp").string() +
                      "\"\n#include \"/etc/passwd\"\n#include \"../own/inside.hpp\"\n"
                      "#include \"sub/../../secret.hpp\"\n#include \"sub/../../own/inside.hpp\"\n"),
              IsEmpty());
  EXPECT_THAT(brought("#include \"sub/up.hpp\"\n"), ElementsAre("inside.hpp", "sub/up.hpp"));
}

TEST_F(Headers, NamesThatAreNoneAreLeftOut) {
  write("own/a.hpp", "");
  EXPECT_THAT(brought("#include \"missing.hpp\"\n#include \"a.hpp/b.hpp\"\n#include \".\"\n#include \"..\"\n"
                      "#include \"/\"\n#include \"a.hpp/\"\n"),
              IsEmpty());
  EXPECT_THAT(brought(std::string("#include \"a.hpp\0\"\n", 18)), IsEmpty());
  EXPECT_THAT(brought("#include \"" + std::string(5000, 'x') + "\"\n"), IsEmpty());
  fs::create_directories(folder() / "folder.hpp");
  EXPECT_THAT(brought("#include \"folder.hpp\"\n"), IsEmpty());
}

TEST_F(Headers, LinksAndSpecialFilesAreRefused) {
  fs::create_symlink(root_.path() / "secret.hpp", folder() / "link.hpp");
  EXPECT_THAT(refusal("#include \"link.hpp\"\n"), HasSubstr("link.hpp: not a plain file; links"));
  fs::create_symlink(root_.path(), folder() / "out");
  EXPECT_THAT(refusal("#include \"out/secret.hpp\"\n"), HasSubstr("out: not a plain file; links"));
  fs::create_symlink("nowhere", folder() / "broken.hpp");
  EXPECT_THAT(refusal("#include \"broken.hpp\"\n"), HasSubstr("broken.hpp: not a plain file; links"));
  ASSERT_EQ(::mkfifo((folder() / "pipe.hpp").c_str(), 0600), 0);  // reading it would wait for ever
  EXPECT_THAT(refusal("#include \"pipe.hpp\"\n"), HasSubstr("pipe.hpp: not a plain file"));
}

TEST_F(Headers, AreNotMoreThanASubmissionHolds) {
  std::string source;
  for (int i = 0; i < 256; ++i) {
    const std::string name = "h" + std::to_string(i) + ".hpp";
    write("own/" + name, "");
    source += "#include \"" + name + "\"\n";
  }
  EXPECT_THAT(refusal(source), HasSubstr("at most 256 files"));
  write("own/large.hpp", std::string((8 << 20) + 1, ' '));
  EXPECT_THAT(refusal("#include \"large.hpp\"\n"), HasSubstr("8 MiB"));
}

TEST_F(Headers, TravelWithAFileAndCountInItsHash) {
  write("own/a.hpp", "one\n");
  write("own/kernel.cpp", "#include \"a.hpp\"\n");
  const Submission first = read_submission(folder() / "kernel.cpp", std::nullopt);
  ASSERT_EQ(first.files.size(), 2u);
  EXPECT_EQ(first.main().path, "submission.cpp");
  EXPECT_EQ(first.files[1].path, "a.hpp");
  write("own/a.hpp", "two\n");
  EXPECT_NE(read_submission(folder() / "kernel.cpp", std::nullopt).sha256, first.sha256);
}

TEST_F(Headers, TheNameOfTheSubmissionItselfIsTaken) {
  write("own/submission.cpp", "");
  write("own/kernel.cpp", "#include \"submission.cpp\"\n");
  try {
    (void)read_submission(folder() / "kernel.cpp", std::nullopt);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("hand in the folder"));
  }
}

}  // namespace
}  // namespace kbh
