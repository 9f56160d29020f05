// docs/problems.md shows what the command prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.hpp"

namespace kbh::test {
namespace {

TEST(ProblemsPage, ShowsTheBoundsThatTheCommandPrints) {
  const CommandResult bounds = kbh({"problems", "--deck", "h200"});
  ASSERT_EQ(bounds.exit_code, 0) << bounds.err;
  const std::string page = read_text(fs::path(KBH_SOURCE_DIR) / "docs/problems.md");
  EXPECT_THAT(page, ::testing::HasSubstr("```text\n" + bounds.out + "```\n"))
      << "put the output of `kbh problems --deck h200` there";
}

TEST(ProblemsPage, LinksToAPageOfEachProblem) {
  const std::string page = read_text(fs::path(KBH_SOURCE_DIR) / "docs/problems.md");
  const Json all = Json::parse(kbh({"problems", "--json"}).out);
  for (const Json& problem : all.at("problems")) {
    const std::string file = "problems/" + problem.at("id").get<std::string>() + ".md";
    EXPECT_THAT(page, ::testing::HasSubstr("](" + file + ")"));
    EXPECT_TRUE(fs::exists(fs::path(KBH_SOURCE_DIR) / "docs" / file)) << file;
  }
}

TEST(Decks, WithoutARunnerNothingIsGraded) {
  const std::string submission = KBH_SOURCE_DIR "/kernels/05_topk/host-cpu-baseline";
  const CommandResult metal = kbh({"grade", submission, "--deck", "m4-max"});
  EXPECT_EQ(metal.exit_code, 3);
  EXPECT_THAT(metal.err, ::testing::HasSubstr("deck m4-max: nothing can be graded on it here: no runner"));
  const CommandResult cuda = kbh({"grade", submission, "--deck", "h200"});
  EXPECT_EQ(cuda.exit_code, 3);
  EXPECT_THAT(cuda.err, ::testing::HasSubstr("deck h200: nothing can be graded on it here"));
  EXPECT_EQ(kbh({"bench", "--watch", submission + "/submission.cpp", "--watch-runs", "1", "--deck", "h200"}).exit_code,
            3);
}

TEST(Bounds, CpuDeckSaysWhenItsPeaksAreNotMeasured) {
  const TempDir empty("kbh-cache");
  const CommandOptions without{{{"KBH_CACHE", empty.path().string()}}, {}};
  const CommandResult text = kbh({"problems", "--deck", "cpu"}, without);
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, ::testing::HasSubstr("`kbh ceilings`"));
  const Json json = Json::parse(kbh({"problems", "--deck", "cpu", "--json"}, without).out);
  EXPECT_EQ(json.at("schema"), "kbh.bounds/1");
  EXPECT_EQ(json.at("peaks"), "unavailable");
  EXPECT_FALSE(json.at("problems").at(0).at("shapes").at(0).contains("roofline_us"));
}

}  // namespace
}  // namespace kbh::test
