#include "problem/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"

namespace kbh {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view name) {
  try {
    find_problem(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(Registry, FindsAProblemByEveryNameItHas) {
  for (const std::string_view name : {"05_topk", "05_topk_bitonic", "topk", "05", "5"})
    EXPECT_EQ(find_problem(name).id, "05_topk") << name;
}

TEST(Registry, AnUnknownNameGetsTheNearestOne) {
  EXPECT_EQ(error_of("05_topkk"), "unknown problem \"05_topkk\": did you mean 05_topk?");
  EXPECT_THAT(error_of("topk_bitonik"), HasSubstr("did you mean topk_bitonic?"));
  EXPECT_THAT(error_of("nothing of the kind"), HasSubstr("05_topk"));
  EXPECT_THAT(error_of(""), HasSubstr("unknown problem \"\""));
  EXPECT_THAT(error_of("055"), HasSubstr("unknown problem"));
  EXPECT_THAT(error_of("-5"), HasSubstr("unknown problem"));
}

TEST(Registry, NamesAreUniqueAndIdsInOrder) {
  std::set<std::string> names;
  std::string last;
  for (const Problem& problem : all_problems()) {
    EXPECT_LT(last, problem.id);
    last = problem.id;
    EXPECT_TRUE(names.insert(problem.id).second);
    for (const std::string& alias : problem.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
  }
}

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  const std::vector<std::string> names = {"cpu", "cpu-tiny", "h200"};
  EXPECT_EQ(nearest_name("cpu_tiny", names), "cpu-tiny");
  EXPECT_EQ(nearest_name("h20", names), "h200");
  EXPECT_EQ(nearest_name("cqu", names), "cpu");
  EXPECT_EQ(nearest_name("something else", names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

}  // namespace
}  // namespace kbh
