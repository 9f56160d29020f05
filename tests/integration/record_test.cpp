// What a grade leaves behind: records that can be read whatever happens, replayed data, documents alone on stdout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <sstream>
#include <thread>

#include "command.hpp"

namespace kbh::test {
namespace {

using ::testing::HasSubstr;

const std::string kBaseline = KBH_SOURCE_DIR "/kernels/05_topk/host-cpu-baseline";

class Record : public ::testing::Test {
 protected:
  [[nodiscard]] std::string store() const { return (work_.path() / "runs").string(); }
  TempDir work_{"kbh-record"};
};

TEST_F(Record, JsonIsAloneOnStdoutAndComplete) {
  const CommandResult result = kbh({"grade", kBaseline, "--deck", "cpu-tiny", "--store", store(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json grade = Json::parse(result.out);  // throws when anything else was printed
  EXPECT_EQ(grade.at("schema"), "kbh.grade/1");
  EXPECT_EQ(grade.at("verdict"), "pass");
  EXPECT_EQ(grade.at("problem").at("id"), "05_topk");
  EXPECT_EQ(grade.at("timing").at("shapes").at(0).at("samples").size(), 3U);  // all raw samples are kept
  EXPECT_GT(grade.at("score").at("attainable_fraction"), 0.0);
  EXPECT_EQ(grade.at("check").at("passed"), grade.at("check").at("total"));
  EXPECT_GT(grade.at("check").at("total"), 30);
  const fs::path folder = fs::path(store()) / grade.at("id").get<std::string>();
  for (const char* name : {"grade.json", "build.log", "worker.log", "submission/submission.cpp"})
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  EXPECT_FALSE(fs::exists(folder / "grading.json"));
}

TEST_F(Record, AGradeCanBeReplayedWithItsSeed) {
  const std::string wrong = KBH_SOURCE_DIR "/tests/cases/honest_topk.hpp";
  // A submission whose answer depends on the data alone: the same seed gives the same mismatch.
  const fs::path folder = work_.path() / "wrong";
  fs::create_directories(folder);
  write_atomic(folder / "honest_topk.hpp", read_text(wrong));
  write_atomic(folder / "submission.cpp",
               "#include \"honest_topk.hpp\"\n"
               "extern \"C\" int kbh_run(void*, const kbh_tensor* i, int32_t, const kbh_tensor* o, int32_t, void*) {\n"
               "  Problem p = problem_of(i, o); solve(p); p.values[0] = p.values[1]; return 0; }\n");
  const auto first_mismatch = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"check",    folder.string(), "-p",    "05",    "-d",
                                       "cpu-tiny", "--store",       store(), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json grade = Json::parse(kbh(arguments).out);
    for (const Json& call : grade.at("check").at("calls"))
      if (call.at("case") == "nominal" && call.at("listed") == true)
        return std::pair(grade.at("seed").at("hex").get<std::string>(), call.at("mismatch"));
    return std::pair(std::string(), Json());
  };
  const auto [seed, mismatch] = first_mismatch({});
  const auto [other_seed, other_mismatch] = first_mismatch({});
  const auto [same_seed, same_mismatch] = first_mismatch({"--seed", seed});
  EXPECT_EQ(seed.size(), 32U);
  EXPECT_NE(seed, other_seed);
  EXPECT_NE(mismatch, other_mismatch);
  EXPECT_EQ(seed, same_seed);
  EXPECT_EQ(mismatch, same_mismatch);
}

TEST_F(Record, SeveralSubmissionsShareOneProcess) {
  const CommandResult result =
      kbh({"check", kBaseline, kBaseline, "-d", "cpu-tiny", "--store", store(), "--json", "-q"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out).at("grades").size(), 2U);
  EXPECT_EQ(records_of(store()).size(), 2U);  // started in the same second, yet apart
}

TEST_F(Record, TheStoreComesFromTheEnvironmentToo) {
  const CommandResult result =
      kbh({"check", kBaseline, "-d", "cpu-tiny", "-q"}, {.environment = {{"KBH_STORE", store()}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(records_of(store()).size(), 1U);
}

TEST_F(Record, ACompiledSubmissionIsFoundInTheCache) {
  kbh({"check", kBaseline, "-d", "cpu-tiny", "--store", store(), "-q"});
  const Json grade = Json::parse(kbh({"check", kBaseline, "-d", "cpu-tiny", "--store", store(), "-q", "--json"}).out);
  EXPECT_EQ(grade.at("build").at("cached"), true);
}

TEST_F(Record, AnAlteredCacheEntryIsBuiltAgain) {
  const std::string cache = (work_.path() / "cache").string();
  const CommandOptions options{.environment = {{"KBH_CACHE", cache}}};
  kbh({"check", kBaseline, "-d", "cpu-tiny", "--store", store(), "-q"}, options);
  for (const fs::path& file : list_files(cache))
    if (file.filename() == "submission.so") write_atomic(fs::path(cache) / file, "something else");
  const CommandResult result = kbh({"check", kBaseline, "-d", "cpu-tiny", "--store", store(), "-q", "--json"}, options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out).at("build").at("cached"), false);
}

/// A process, told from a later one with the same number by its start time.
struct Process {
  std::string pid;
  std::string start;
};

/// Fields of /proc/PID/stat behind the name: state, parent, ...; empty when it is gone.
std::vector<std::string> stat_of(const std::string& pid) {
  try {
    const std::string text = read_text("/proc/" + pid + "/stat");
    std::istringstream words(text.substr(text.rfind(')') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  } catch (const std::exception&) {
    return {};
  }
}

bool alive(const Process& process) {
  const std::vector<std::string> stat = stat_of(process.pid);
  return stat.size() > 19 && stat[0] != "Z" && stat[19] == process.start;
}

/// All processes below `ancestor`.
std::vector<Process> descendants_of(const std::string& ancestor) {
  std::vector<Process> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename().string();
    const std::vector<std::string> stat = stat_of(pid);
    if (stat.size() <= 19 || stat[1] != ancestor) continue;
    found.push_back({pid, stat[19]});
    const std::vector<Process> below = descendants_of(pid);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

/// The processes below `grader` once a worker is among them.
std::vector<Process> wait_for_worker(pid_t grader) {
  for (int i = 0; i < 1500; ++i) {
    std::vector<Process> family = descendants_of(std::to_string(grader));
    for (const Process& process : family)
      if (fs::exists("/proc/" + process.pid) && read_text("/proc/" + process.pid + "/comm") == "kbh-worker\n")
        return family;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

TEST_F(Record, KilledInTheMiddleTheFolderStaysReadableAndTheNextStartCleansUp) {
  const fs::path slow = fs::path(KBH_SOURCE_DIR) / "tests/cases/bad/loops_in_constructor.cpp";
  const fs::path folder = work_.path() / "slow";
  fs::create_directories(folder);
  write_atomic(folder / "honest_topk.hpp", read_text(fs::path(KBH_SOURCE_DIR) / "tests/cases/honest_topk.hpp"));
  write_atomic(folder / "submission.cpp", read_text(slow));
  const fs::path temporary = work_.path() / "tmp";
  fs::create_directories(temporary);
  for (const fs::path& open : {work_.path(), temporary}) fs::permissions(open, fs::perms(0755));
  const CommandOptions options{.environment = {{"TMPDIR", temporary.string()}}};
  const pid_t grader = ::fork();
  if (grader == 0) {
    ::setenv("TMPDIR", temporary.c_str(), 1);
    ::execl(KBH_BINARY_DIR "/kbh", "kbh", "check", folder.c_str(), "-p", "05", "-d", "cpu-tiny", "--store",
            store().c_str(), "-q", nullptr);
    ::_exit(127);
  }
  const std::vector<Process> family = wait_for_worker(grader);
  EXPECT_FALSE(family.empty()) << "the grader started a worker";
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(grader, SIGKILL);
  ::waitpid(grader, nullptr, 0);
  const auto any_alive = [&] { return std::any_of(family.begin(), family.end(), alive); };
  for (int i = 0; i < 500 && any_alive(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(any_alive()) << "the sandbox dies with the grader";

  const fs::path run = fs::directory_iterator(store())->path();
  EXPECT_TRUE(fs::exists(run / "grading.json"));
  EXPECT_TRUE(fs::exists(run / "submission" / "submission.cpp"));
  EXPECT_FALSE(fs::is_empty(temporary));
  const CommandResult next = kbh({"check", kBaseline, "-d", "cpu-tiny", "--store", store()}, options);
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_THAT(next.err, HasSubstr("was interrupted"));
  EXPECT_FALSE(fs::exists(run / "grading.json"));
  EXPECT_TRUE(fs::is_empty(temporary)) << "temporary folders of the dead grader are removed";
  EXPECT_EQ(Json::parse(read_text(run / "interrupted.json")).at("schema"), "kbh.interrupted/1");
}

TEST_F(Record, AFullDiskIsOurFaultAndNamesThePath) {
  const fs::path disk = work_.path() / "disk";
  fs::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  write_atomic(disk / "filler", std::string(40 << 10, 'x'));
  const CommandResult result = kbh({"check", kBaseline, "-d", "cpu-tiny", "--store", (disk / "runs").string(), "-q"});
  EXPECT_EQ(result.exit_code, 4) << result.out;
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
  EXPECT_THAT(result.err, HasSubstr(disk.string()));
  // What was written before is whole, and no half-written file is left.
  for (const fs::path& file : list_files(disk)) EXPECT_THAT(file.string(), ::testing::Not(HasSubstr(".tmp-")));
  ::umount(disk.c_str());
}

TEST_F(Record, AnUnwritableStoreIsAUsageError) {
  const fs::path file = work_.path() / "occupied";
  write_atomic(file, "a file, not a folder");
  const CommandResult result = kbh({"check", kBaseline, "-d", "cpu-tiny", "--store", file.string(), "-q"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("occupied"));
}

}  // namespace
}  // namespace kbh::test
