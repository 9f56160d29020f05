// Every file of tests/cases/bad and tests/cases/honest, graded by the built binary (see tests/cases/README.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "command.hpp"

namespace kbh::test {
namespace {

using ::testing::HasSubstr;

/// What the first comment lines of a case say.
struct Expectation {
  std::vector<std::string> verdicts;
  std::vector<std::string> says;
  std::string stage;
  std::string level;
  std::string mode = "check";
  std::string flags;
  std::string skip_under;
  int exit = -1;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Expectation read_expectation(const std::string& source) {
  Expectation e;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(3, colon - 3);
    const std::string value = line.substr(colon + 2);
    if (key == "expect verdict") e.verdicts = split(value, '|');
    if (key == "expect says") e.says.push_back(value);
    if (key == "expect stage") e.stage = value;
    if (key == "expect level") e.level = value;
    if (key == "expect exit") e.exit = std::stoi(value);
    if (key == "skip under") e.skip_under = value;
    if (key == "mode") e.mode = value;
    if (key == "flags") e.flags = value;
  }
  return e;
}

std::vector<std::string> case_names(const std::vector<std::string>& kinds) {
  std::vector<std::string> names;
  for (const std::string& kind : kinds)
    for (const fs::path& file : list_files(fs::path(KBH_SOURCE_DIR) / "tests/cases" / kind))
      names.push_back(kind + "/" + file.stem().string());
  return names;
}

class SubmissionCase : public ::testing::TestWithParam<std::string> {
 protected:
  /// The case as a submission folder of its own.
  fs::path submission(const std::string& source, const Expectation& e) const {
    const fs::path folder = work_.path() / "submission";
    fs::create_directories(folder);
    std::string text = source;
    for (std::size_t at = 0; (at = text.find("@STORE@", at)) != std::string::npos;)
      text.replace(at, 7, store().string());
    if (!e.flags.empty()) text = "// kbh: " + e.flags + "\n" + text;
    write_atomic(folder / "submission.cpp", text);
    write_atomic(folder / "honest_topk.hpp", read_text(fs::path(KBH_SOURCE_DIR) / "tests/cases/honest_topk.hpp"));
    return folder;
  }
  [[nodiscard]] fs::path store() const { return work_.path() / "runs"; }

  TempDir work_{"kbh-case"};
};

bool has_nvcc() {
  static const bool found = [] {
    const Json doctor = Json::parse(kbh({"doctor", "--json"}).out);
    for (const Json& finding : doctor.at("findings"))
      if (finding.at("topic") == "nvcc") return finding.at("status") == "ok";
    return false;
  }();
  return found;
}

/// A sealed submission, as far as a machine without a GPU can take it.
class PlanCase : public SubmissionCase {};

TEST_P(PlanCase, EndsAsItSays) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc here";
  const std::string file = std::string(KBH_SOURCE_DIR) + "/tests/cases/" + GetParam() + ".cu";
  const Expectation e = read_expectation(read_text(file));
  const CommandResult result = kbh(
      {"grade", file, "--problem", "05_topk", "--deck", "h200", "--dry-run", "--store", store().string(), "--json"});
  SCOPED_TRACE(result.err + result.out.substr(0, 2000));
  const Json grade = Json::parse(result.out, nullptr, false);
  ASSERT_TRUE(grade.is_object());
  EXPECT_EQ(result.exit_code, e.verdicts == std::vector<std::string>{"not_graded"} ? 0 : 1);
  EXPECT_EQ(std::vector<std::string>{grade.at("verdict")}, e.verdicts);
  if (!grade.contains("finding")) {
    EXPECT_TRUE(fs::exists(fs::path(store()) / grade.at("id").get<std::string>() / "plan.json"));
    return;
  }
  EXPECT_EQ(grade.at("finding").at("stage"), e.stage);
  for (const std::string& text : e.says) EXPECT_THAT(grade.at("finding").dump(), HasSubstr(text));
}

/// Sealed submissions that only a GPU can judge (scripts/gpu-check), and those that we ship: they build and plan.
class SealedSubmission : public SubmissionCase {};

TEST_P(SealedSubmission, BuildsAndPlans) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc here";
  const fs::path path = fs::path(KBH_SOURCE_DIR) / GetParam();
  const std::string problem = GetParam().starts_with("kernels/") ? path.parent_path().filename().string() : "05_topk";
  const CommandResult result = kbh({"grade", path.string(), "--problem", problem, "--deck", "h200", "--dry-run",
                                    "--store", store().string(), "--json"});
  SCOPED_TRACE(result.err + result.out.substr(0, 2000));
  EXPECT_EQ(result.exit_code, 0);
  const Json grade = Json::parse(result.out);
  EXPECT_EQ(grade.at("verdict"), "not_graded");
  for (const Json& kernel : grade.at("plan").at("kernels")) EXPECT_GT(kernel.at("registers"), 0) << kernel.dump();
}

std::vector<std::string> sealed_submissions() {
  std::vector<std::string> paths;
  const fs::path root = KBH_SOURCE_DIR;
  for (const auto& problem : fs::directory_iterator(root / "kernels"))
    for (const auto& entry : fs::directory_iterator(problem))
      if (entry.path().filename().string().starts_with("sealed"))
        paths.push_back(fs::relative(entry.path(), root).string());
  for (const auto& entry : fs::directory_iterator(root / "tests/cases/gpu"))
    if (entry.path().extension() == ".cu") paths.push_back(fs::relative(entry.path(), root).string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST_P(SubmissionCase, EndsAsItSays) {
  const bool honest = GetParam().starts_with("honest/");
  const std::string source = read_text(fs::path(KBH_SOURCE_DIR) / "tests/cases" / (GetParam() + ".cpp"));
  Expectation e = read_expectation(source);
  if (honest) e.verdicts = {"pass"};
  if (!e.level.empty() && !sandbox_offers(e.level)) GTEST_SKIP() << "no sandbox of level " << e.level << " here";

#ifdef KBH_SANITIZED
  if (e.skip_under == "sanitizers") GTEST_SKIP() << "sanitizers reserve more address space than the limit allows";
#endif

  const CommandResult result = kbh({e.mode, submission(source, e).string(), "--problem", "05_topk", "--deck",
                                    "cpu-tiny", "--store", store().string(), "--json"});
  SCOPED_TRACE(result.err + result.out.substr(0, 2000));
  if (e.exit >= 0) {
    EXPECT_EQ(result.exit_code, e.exit);
    for (const std::string& text : e.says) EXPECT_THAT(result.err, HasSubstr(text));
    return;
  }
  ASSERT_EQ(result.exit_code, honest ? 0 : 1);
  const Json grade = Json::parse(result.out);
  EXPECT_NE(std::find(e.verdicts.begin(), e.verdicts.end(), grade.at("verdict")), e.verdicts.end())
      << "verdict " << grade.at("verdict");
  // The record on disk is the document that was printed.
  const auto records = records_of(store());
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records.begin()->second, grade);
  std::string said = grade.at("worker_log_truncated") == true ? "log truncated" : "";
  if (grade.contains("finding")) {
    const Json& finding = grade.at("finding");
    said += finding.dump();
    EXPECT_FALSE(finding.at("next").get<std::string>().empty()) << "a failure says what to do next";
    EXPECT_TRUE(e.stage.empty() || finding.at("stage") == e.stage) << "stage " << finding.at("stage");
  }
  for (const std::string& text : e.says) EXPECT_THAT(said, HasSubstr(text));
}

std::string test_name(const ::testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, SubmissionCase, ::testing::ValuesIn(case_names({"bad", "honest"})), test_name);
INSTANTIATE_TEST_SUITE_P(Cases, PlanCase, ::testing::ValuesIn(case_names({"plans"})), test_name);
INSTANTIATE_TEST_SUITE_P(All, SealedSubmission, ::testing::ValuesIn(sealed_submissions()), test_name);

}  // namespace
}  // namespace kbh::test
