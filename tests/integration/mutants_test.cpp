// Every wrong kernel of redteam/mutants, handed in: graded by the built binary, none passes. And the plain right ones
// do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "command.hpp"

namespace kbh::test {
namespace {

fs::path mutants_of(const std::string& problem) { return fs::path(KBH_SOURCE_DIR) / "redteam/mutants" / problem; }

std::vector<std::string> folders_of(const fs::path& root) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> problems_with_mutants() { return folders_of(fs::path(KBH_SOURCE_DIR) / "redteam/mutants"); }

std::vector<std::string> problems_with_a_baseline() {
  std::vector<std::string> ids = folders_of(fs::path(KBH_SOURCE_DIR) / "kernels");
  std::erase_if(ids, [](const std::string& id) {
    return !fs::exists(fs::path(KBH_SOURCE_DIR) / "kernels" / id / "host-cpu-baseline");
  });
  return ids;
}

/// What a comment line such as "// expect verdict: incorrect|crashed" allows; else incorrect alone.
std::set<std::string> verdicts_allowed(const std::string& source) {
  constexpr std::string_view kMarker = "// expect verdict: ";
  const std::size_t at = source.find(kMarker);
  if (at == std::string::npos) return {"incorrect"};
  std::istringstream words(source.substr(at + kMarker.size(), source.find('\n', at) - at - kMarker.size()));
  std::set<std::string> verdicts;
  for (std::string word; std::getline(words, word, '|');) verdicts.insert(word);
  return verdicts;
}

class Mutants : public ::testing::TestWithParam<std::string> {};

/// All of a problem in one process: starting the grader once per mutant would take longer than grading.
TEST_P(Mutants, HandedInTheyFail) {
  std::vector<std::string> arguments = {"grade"};
  for (const fs::path& file : list_files(mutants_of(GetParam())))
    if (file.extension() == ".cpp") arguments.push_back((mutants_of(GetParam()) / file).string());
  const std::size_t count = arguments.size() - 1;
  ASSERT_GE(count, 8u);
  const TempDir store("kbh-mutants");
  for (const char* word :
       {"--problem", GetParam().c_str(), "--deck", "cpu-tiny", "--json", "--quiet", "--store", store.path().c_str()})
    arguments.emplace_back(word);
  const CommandResult result = kbh(arguments);
  ASSERT_EQ(result.exit_code, 1) << result.err;
  const Json all = Json::parse(result.out);
  ASSERT_EQ(all.at("grades").size(), count);
  for (const Json& grade : all.at("grades")) {
    const std::string origin = grade.at("submission").at("origin");
    EXPECT_TRUE(verdicts_allowed(read_text(origin)).contains(grade.at("verdict").get<std::string>()))
        << origin << ": " << grade.at("verdict") << ' '
        << grade.value("finding", Json::object()).dump().substr(0, 1000);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(problems_with_mutants()),
                         [](const auto& test) { return test.param; });

class Baselines : public ::testing::TestWithParam<std::string> {};

TEST_P(Baselines, Pass) {
  const TempDir store("kbh-baseline");
  const fs::path folder = fs::path(KBH_SOURCE_DIR) / "kernels" / GetParam() / "host-cpu-baseline";
  const CommandResult result =
      kbh({"grade", folder.string(), "--deck", "cpu-tiny", "--json", "--quiet", "--store", store.path().string()});
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out.substr(0, 2000);
}

INSTANTIATE_TEST_SUITE_P(All, Baselines, ::testing::ValuesIn(problems_with_a_baseline()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace kbh::test
