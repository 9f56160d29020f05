// Every wrong kernel of redteam/mutants, handed in: graded by the built binary, none passes. And the plain right ones
// do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
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

/// What a mutant's comment lines say, such as "// expect verdict: incorrect|crashed" and "// expect deck: cpu" (where
/// the tiny deck's shape is too small for it to be wrong).
std::string expected(const std::string& file, const std::string& what, const std::string& otherwise) {
  const std::string source = read_text(file);
  const std::string marker = "\n// expect " + what + ": ";
  const std::size_t at = source.find(marker);
  if (at == std::string::npos) return otherwise;
  const std::size_t begin = at + marker.size();
  return source.substr(begin, source.find('\n', begin) - begin);
}

bool allowed(const std::string& verdict, const std::string& file) {
  std::istringstream words(expected(file, "verdict", "incorrect"));
  for (std::string word; std::getline(words, word, '|');)
    if (word == verdict) return true;
  return false;
}

/// By deck.
std::map<std::string, std::vector<std::string>> chosen_mutants(const std::string& problem) {
  const char* wanted = std::getenv("KBH_MUTANTS");
  const std::size_t stride = wanted && std::string_view(wanted) == "all" ? 1 : 5;
  std::vector<std::string> files;
  for (const fs::path& file : list_files(mutants_of(problem)))
    if (file.extension() == ".cpp") files.push_back((mutants_of(problem) / file).string());
  std::map<std::string, std::vector<std::string>> chosen;
  for (std::size_t i = 0; i < files.size(); i += stride)
    chosen[expected(files[i], "deck", "cpu-tiny")].push_back(files[i]);
  return chosen;
}

class Mutants : public ::testing::TestWithParam<std::string> {};

/// All of a problem in one process: starting the grader once per mutant would take longer than grading.
TEST_P(Mutants, HandedInTheyFail) {
  for (const auto& [deck, mutants] : chosen_mutants(GetParam())) {
    const TempDir store("kbh-mutants");
    std::vector<std::string> arguments = {"grade",   "--problem", GetParam(),           "--deck", deck, "--json",
                                          "--quiet", "--store",   store.path().string()};
    arguments.insert(arguments.end(), mutants.begin(), mutants.end());
    const CommandResult result = kbh(arguments);
    ASSERT_EQ(result.exit_code, 1) << result.err;
    const Json document = Json::parse(result.out);
    const Json grades = mutants.size() == 1 ? Json::array({document}) : document.at("grades");
    ASSERT_EQ(grades.size(), mutants.size());
    for (const Json& grade : grades) {
      const std::string origin = grade.at("submission").at("origin");
      EXPECT_TRUE(allowed(grade.at("verdict"), origin))
          << origin << ": " << grade.at("verdict") << ' '
          << grade.value("finding", Json::object()).dump().substr(0, 1000);
    }
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
