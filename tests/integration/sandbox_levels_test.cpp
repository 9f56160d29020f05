// Forbidden acts, tried from inside a graded submission at every level of the sandbox (tests/data/acts/acts.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "command.hpp"

namespace kbh::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Acts {
  std::vector<std::string> denied;
  std::vector<std::string> allowed;
};

/// Grades the submission of acts and reads what it printed.
Acts acts_at(const std::vector<std::string>& level_option) {
  const TempDir work("kbh-acts");
  const fs::path folder = work.path() / "acts";
  const fs::path store = work.path() / "runs";
  fs::create_directories(folder);
  fs::create_directories(store);
  fs::permissions(work.path(), fs::perms(0755));
  // Readable by everybody outside: only the sandbox can hide it.
  const fs::path secret = store / "secret.txt";
  write_atomic(secret, "expected values");
  write_atomic(folder / "submission.cpp", read_text(fs::path(KBH_SOURCE_DIR) / "tests/data/acts/acts.cpp"));
  write_atomic(folder / "acts_paths.h", "#define KBH_ACT_PATHS \"" + secret.string() + "\"\n");

  std::vector<std::string> arguments{"check",    folder.string(), "-p",           "05", "-d",
                                     "cpu-tiny", "--store",       store.string(), "-q"};
  arguments.insert(arguments.end(), level_option.begin(), level_option.end());
  const CommandResult result = kbh(arguments);
  EXPECT_EQ(result.exit_code, 1) << result.err;  // it writes no outputs
  const auto records = records_of(store);
  EXPECT_EQ(records.size(), 1U);

  Acts acts;
  std::istringstream log(read_text(store / records.begin()->first / "worker.log"));
  for (std::string line; std::getline(log, line);) {
    if (line.starts_with("ACT ") && line.find(" denied ") != std::string::npos) acts.denied.push_back(line);
    if (line.starts_with("ACT ") && line.find(" ALLOWED ") != std::string::npos) acts.allowed.push_back(line);
  }
  return acts;
}

TEST(SandboxLevels, FullDeniesEveryForbiddenAct) {
  if (!sandbox_offers("full")) GTEST_SKIP() << "no full sandbox here";
  const Acts acts = acts_at({"--sandbox", "full"});
  EXPECT_THAT(acts.allowed, IsEmpty());
  EXPECT_GE(acts.denied.size(), 24U);
}

TEST(SandboxLevels, ReducedDeniesEveryForbiddenAct) {
  if (!sandbox_offers("reduced")) GTEST_SKIP() << "no reduced sandbox here";
  const Acts acts = acts_at({"--sandbox", "reduced"});
  EXPECT_THAT(acts.allowed, IsEmpty());
  EXPECT_GE(acts.denied.size(), 24U);
}

TEST(SandboxLevels, WithoutASandboxTheActsSucceed) {  // so that the tests above can fail
  EXPECT_GE(acts_at({"--no-sandbox"}).allowed.size(), 12U);
}

TEST(SandboxLevels, NoSandboxIsSaidInWords) {
  const TempDir work("kbh-none");
  const std::string plain = KBH_SOURCE_DIR "/kernels/05_topk/host-cpu-baseline";
  const CommandResult result =
      kbh({"check", plain, "-d", "cpu-tiny", "--store", (work.path() / "runs").string(), "--no-sandbox"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("NOT SANDBOXED"));
  EXPECT_EQ(records_of(work.path() / "runs").begin()->second.at("sandbox"), "none");
}

TEST(SandboxLevels, HonestSubmissionsPassReduced) {
  if (!sandbox_offers("reduced")) GTEST_SKIP() << "no reduced sandbox here";
  const TempDir work("kbh-reduced");
  const CommandResult result = kbh({"grade", KBH_SOURCE_DIR "/kernels/05_topk/host-cpu", "-d", "cpu-tiny", "--store",
                                    (work.path() / "runs").string(), "--sandbox", "reduced"});
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr("sandbox: reduced"));
}

}  // namespace
}  // namespace kbh::test
