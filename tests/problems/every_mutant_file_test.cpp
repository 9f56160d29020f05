// Lint and the submissions of redteam/mutants speak of the same wrong kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.hpp"
#include "problem/registry.hpp"

namespace kbh {
namespace {

TEST(MutantFiles, EveryMutantHasOneAndThereAreNoOthers) {
  for (const Problem& problem : all_problems()) {
    std::vector<std::string> names;
    for (const Mutant& mutant : problem.mutants) names.push_back(mutant.name);
    std::vector<std::string> files;
    for (const fs::path& file : list_files(fs::path(KBH_SOURCE_DIR) / "redteam/mutants" / problem.id))
      if (file.extension() == ".cpp") files.push_back(file.stem().string());
    EXPECT_THAT(files, testing::UnorderedElementsAreArray(names)) << problem.id;
  }
}

TEST(MutantFiles, EachSaysWhatIsWrongAndWhichItIs) {
  for (const Problem& problem : all_problems()) {
    const fs::path folder = fs::path(KBH_SOURCE_DIR) / "redteam/mutants" / problem.id;
    for (const fs::path& file : list_files(folder)) {
      if (file.extension() != ".cpp") continue;
      const std::string source = read_text(folder / file);
      EXPECT_TRUE(source.starts_with("//")) << folder / file;
      EXPECT_THAT(source, testing::HasSubstr("#define KBH_MUTANT " + file.stem().string() + "\n")) << folder / file;
      EXPECT_THAT(source, testing::HasSubstr("#include \"wrong.hpp\"\n")) << folder / file;
    }
  }
}

}  // namespace
}  // namespace kbh
